// The gated delta net (Yang et al. 2024): attention whose memory of a sequence is a matrix per head, not its tokens.
#pragma once

#include "step.h"

namespace kaiwa {

struct DeltaNetOptions {
  int layer;  // of the state cache
  int num_key_heads, num_value_heads, key_dim, value_dim;
  bool is_tiled;  // value head h belongs to key head h % num_key_heads, not to h / (num_value_heads / num_key_heads)
  MatrixPtr convolution;              // (channels, taps): the last tap is the token's own
  std::vector<float> decays, biases;  // of each value head
  Vector norm;                        // of a value head
  float eps;
};

// For each token: a convolution over its channels (all queries, all keys, all values) and those of the tokens before it;
// decay e^(decays · softplus(alpha + bias)), rate sigmoid(beta); the delta rule on the state of each value head; a norm
// of each head's result, times silu(gate).
class DeltaNet : public Step {
 public:
  struct Slots {
    int channels, gate, beta, alpha, out;
  };
  // Throws std::invalid_argument for heads that do not fit each other.
  DeltaNet(Slots slots, DeltaNetOptions options);

  static size_t state_size(const DeltaNetOptions& options);
  void prepare(const Context& context, int max_rows) override;
  void run(const Context& context, int thread) override;

 private:
  // Of one slice and one head; (tokens, dim) each, or one number per token.
  struct Scratch {
    std::vector<float> queries, keys, values, found, decays, rates, products;
  };

  int num_channels() const { return 2 * options_.num_key_heads * options_.key_dim + options_.num_value_heads * options_.value_dim; }
  int num_past() const { return options_.convolution->columns() - 1; }
  float* recurrent(float* state, int value_head) const {
    return state + (size_t)num_past() * num_channels() + (size_t)value_head * options_.key_dim * options_.value_dim;
  }
  const float* input(const Context& context, int slice, int token) const;
  void convolve(const Context& context, int slice, int first, int count, float* out) const;
  void remember(const Context& context, int slice, int end, int first, int count, float* state) const;
  void run_key_head(const Context& context, int slice, int key_head, Scratch& scratch) const;
  void run_value_head(const Context& context, int slice, int value_head, Scratch& scratch) const;

  Slots slots_;
  DeltaNetOptions options_;
  std::vector<float> taps_;   // (taps, channels)
  std::vector<float> zeros_;  // what lies before a sequence
  std::vector<float> ones_;
  PaddedRow key_norm_, query_norm_;
  std::vector<Scratch> scratch_;  // of each thread
};

}  // namespace kaiwa
