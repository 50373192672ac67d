// A model as a list of steps over rows of numbers, recorded once and replayed for every batch.
//
// All threads run the whole list together. Most steps need one synchronization; work within a step is shared out by
// counters, so that a thread that is held up holds nobody else up for long.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <variant>
#include <vector>

#include "kernels/kernels.h"
#include "kv_cache.h"
#include "thread_pool.h"

namespace kaiwa {

// A norm's weight or a bias, padded with zeros to a multiple of 16.
struct PaddedRow {
  std::vector<float> values;
  const float* data() const { return values.data(); }
};
using Vector = std::shared_ptr<PaddedRow>;
using MatrixPtr = std::shared_ptr<const Matrix>;

// A place for one value per row of the batch: `width` numbers each. It begins as zeros that take no memory.
struct Slot {
  Slot(int width, int max_rows);
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  int width, padded;
  std::unique_ptr<void, Free> memory;
  float* data;  // aligned to a cache line
};

struct Embed {
  MatrixPtr table;
  int out;
  float scale;
};

// out_i (+)= weights_i · norm(in) + bias_i, for several matrices that read the same input. Where it is precise, a quantized
// matrix also takes what was lost as its input was rounded to 8 bits, as a second row.
struct Linear {
  struct Part {
    MatrixPtr weights;
    Vector bias;
    int out;
  };
  int in;
  Vector norm;  // null: none
  float eps;
  std::vector<Part> parts;
  bool accumulate;
  bool is_precise;
};

// out = activation(gate · norm(in)) * (up · norm(in))
struct Gated {
  int in;
  Vector norm;
  float eps;
  MatrixPtr gate, up;
  Activation activation;
  int out;
};

struct Attention {
  int queries, keys, values, out;
  int layer, num_heads, num_kv_heads, head_dim;
  float scale, softcap;
  int window;
  int rope;  // index of a table of frequencies; -1: none
  bool interleaved;
  Vector query_norm, key_norm;  // per head, before the rotation; null: none
  float norm_eps;
};

// Keeps only the rows whose logits are asked for; all later steps see these.
struct Select {
  int in, out;
};

struct Norm {
  int in;
  Vector weight;
  float eps;
  int out;
};

struct Add {
  int in, out;  // out += in
};

using Step = std::variant<Embed, Linear, Gated, Attention, Select, Norm, Add>;

// The rows of a batch that belong to one sequence: tokens at positions [start, start + count).
struct BatchSlice {
  int start;
  int count;
  std::vector<int> blocks;  // of the cache, for positions 0.. of the sequence
};

struct Batch {
  std::vector<int> token_ids;
  std::vector<BatchSlice> slices;  // in the order of their rows
  std::vector<int> logit_rows;     // increasing
};

class Program {
 public:
  Program(std::shared_ptr<ThreadPool> pool, const Kernels* kernels, std::shared_ptr<KvCache> cache, int max_rows);

  // Frequencies of the rotation, one per pair of a head's numbers, and what cos and sin are multiplied by. The same
  // ones have the same index.
  int add_rope(std::vector<float> frequencies, float magnitude);
  int add_slot(int width);
  void add_step(Step step);

  // Runs every step. Throws std::invalid_argument for a batch that does not fit.
  void run(const Batch& batch);

  // Runs every step on `rows` rows that `slot` is filled with, without tokens or a cache.
  void run_rows(int rows, int slot, const float* values);

  // The last value of a slot; rows beyond those of the last batch are old.
  const Slot& slot(int index) const { return slots_[index]; }
  int max_rows() const { return max_rows_; }
  // Seconds that each step took, summed over all runs since profiling began.
  const std::vector<double>& profile() const { return profile_; }
  void set_profiling(bool on);
  const std::vector<Step>& steps() const { return steps_; }

 private:
  struct Rope {
    std::vector<float> frequencies;
    float magnitude;
    std::vector<float> table;  // (rows, 2, pairs): cosines, then sines
  };
  // Quantized and normalized input rows.
  struct Staging {
    std::vector<float> floats;
    std::vector<int8_t> quants;
    std::vector<float> scales, offsets, sums;
    std::vector<int32_t> negative_sums;
    void fit(int rows, int columns);
    Inputs inputs(int columns, int row);
  };
  struct alignas(64) Counter {
    std::atomic<int> next{0};
  };
  struct AttentionItem {
    int slice, kv_head, first_token, num_tokens, first_key, end_key;
    int partial;  // where a split result goes; -1: straight to the output
  };
  struct ThreadScratch {
    Staging staging;
    std::vector<float> attention;
    std::vector<const uint8_t*> keys, values;
    std::vector<float> panels;  // (2, rows, 16)
  };

  void reserve_inputs(int columns, bool precise);
  void check(const Batch& batch) const;
  void plan_attention(const Batch& batch);
  void replay(const Batch& batch);
  void run_step(const Embed& step, int rows, int thread, Counter* counters);
  void run_step(const Linear& step, int rows, int thread, Counter* counters);
  void run_step(const Gated& step, int rows, int thread, Counter* counters);
  void run_step(const Attention& step, int rows, int thread, Counter* counters);
  void run_step(const Select& step, int rows, int thread, Counter* counters);
  void run_step(const Norm& step, int rows, int thread, Counter* counters);
  void run_step(const Add& step, int rows, int thread, Counter* counters);

  Inputs stage(int in, const Vector& norm, float eps, bool floats, bool quants, bool precise, int rows, int thread,
               Counter& counter);
  void stage_row(Staging& staging, int row, const float* x, const Vector& norm, float eps, int columns, bool quants,
                 int residual_row) const;
  void store_keys_and_values(const Attention& step, int slice, int token, int kv_head, ThreadScratch& scratch);
  void attend(const Attention& step, const AttentionItem& item, ThreadScratch& scratch);
  void combine(const Attention& step, int slice, int kv_head, ThreadScratch& scratch);
  void write_attention(const Attention& step, int first_row, int kv_head, int num_rows, const float* sums,
                       const float* weighted);
  float* partial(int index, int rows);
  void fill_ropes(int thread);
  float* row(int slot, int index) { return slots_[slot].data + (size_t)index * slots_[slot].padded; }

  std::shared_ptr<ThreadPool> pool_;
  const Kernels* kernels_;
  std::shared_ptr<KvCache> cache_;
  const int max_rows_;
  std::vector<Slot> slots_;
  std::vector<Rope> ropes_;
  std::vector<Step> steps_;
  int select_step_ = -1;
  std::unique_ptr<Counter[]> counters_;
  std::vector<double> profile_;
  bool is_profiling_ = false;

  // Of the batch that is running.
  const Batch* batch_ = nullptr;
  int num_rows_ = 0;
  std::vector<int> first_rows_;  // of each slice
  std::vector<int> positions_;
  std::vector<AttentionItem> items_;
  std::vector<int> split_slices_;      // slices whose attention is split along the keys
  std::vector<int> first_partials_;    // of each slice: of its first kv head; -1: not split
  std::vector<int> num_splits_;
  bool stores_first_ = false;          // keys and values are stored before any attention
  std::vector<float> partials_;
  int heads_per_kv_ = 1, num_kv_heads_ = 0, padded_dim_ = 0;
  Staging shared_;
  std::vector<ThreadScratch> scratch_;
};

}  // namespace kaiwa
