// Attention: rotates queries and keys, stores keys and values in the cache, and attends to all that the cache holds.
#pragma once

#include "step.h"

namespace kaiwa {

// How the attention of a batch is cut into pieces: the same for all layers with the same heads.
class AttentionPlan {
 public:
  struct Piece {
    int slice, kv_head, first_token, num_tokens;
    int first_key, end_key;  // of a piece whose keys are split; the others see all
    int partial;             // where a split's result goes; -1: straight to the output
  };
  // Tokens of one block of the cache, whose keys lie so close together that only one thread should write them.
  struct Stored {
    int slice, kv_head, first_token, num_tokens;
  };

  AttentionPlan(int num_kv_heads, int heads_per_kv, int padded_dim)
      : num_kv_heads(num_kv_heads), heads_per_kv(heads_per_kv), padded_dim(padded_dim) {}
  void make(const Context& context);
  float* partial(int index) { return partials_.data() + (size_t)index * heads_per_kv * (2 + padded_dim); }

  const int num_kv_heads, heads_per_kv, padded_dim;
  std::vector<Piece> pieces;
  std::vector<Stored> stored;       // all that is stored before any attention, where that has to be
  std::vector<int> split_slices;    // slices whose attention is split along the keys
  std::vector<int> first_partials;  // of each slice: of its first head
  std::vector<int> num_splits;

 private:
  // A split's result: heads_per_kv largest scores, as many sums, then weighted values.
  std::vector<float> partials_;
};

struct AttentionOptions {
  int layer;  // of the cache
  int num_heads, num_kv_heads, head_dim;
  float scale;
  float temperature;  // queries are also multiplied by 1 + temperature * log(1 + floor(position / length))
  int temperature_length;
  float softcap;
  int window;
  int rope;  // index; -1: none
  bool interleaved;
  Vector query_norm, key_norm, value_norm;  // per head, before the rotation; null: none
  float norm_eps;
  bool is_gated;  // each query head is followed by as many numbers, whose sigmoid multiplies what it finds
  Vector sinks;  // a score for each query head that weighs no value and takes its share all the same; null: none
};

class Attention : public Step {
 public:
  // `keys` and `values` are -1 for a layer that reads what another one stored. The plan is made by the first step that
  // has it. Throws std::invalid_argument for heads that do not fit each other.
  Attention(int queries, int keys, int values, int out, AttentionOptions options, std::shared_ptr<AttentionPlan> plan,
            bool makes_plan);

  void prepare(const Context& context, int max_rows) override;
  void begin(const Context& context) override;
  void run(const Context& context, int thread) override;

 private:
  // Rows are those of one piece; (rows, padded_dim) each.
  struct Scratch {
    std::vector<float> queries, weighted, partial_weighted, largest, sums, partial_largest, partial_sums, kernel, key, value;
    std::vector<InputTile> tiles;
    std::vector<uint8_t*> keys, values;
  };

  int query_stride() const { return options_.is_gated ? 2 * options_.head_dim : options_.head_dim; }
  void load_head(const Context& context, const float* from, int row, const Vector& norm, float* head) const;
  float scale_at(int position) const;
  void store(const Context& context, int slice, int token, int kv_head, Scratch& scratch) const;
  template <class Number> void put(const Number* key, const Number* value, int at, Number* keys, Number* values) const;
  void attend(const Context& context, const AttentionPlan::Piece& piece, Scratch& scratch) const;
  void combine(const Context& context, int slice, int kv_head, Scratch& scratch) const;
  void write(const Context& context, int first_row, int kv_head, int num_rows, Scratch& scratch) const;

  int queries_, keys_, values_, out_;
  AttentionOptions options_;
  std::shared_ptr<AttentionPlan> plan_;
  bool makes_plan_;
  int padded_dim_ = 0;
  std::shared_ptr<std::vector<Scratch>> scratch_;  // of each thread
};

}  // namespace kaiwa
