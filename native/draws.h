// Draws the next tokens of several sequences at once, and holds guesses at them against what is drawn.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "sampling.h"
#include "thread_pool.h"

namespace kaiwa {

// Rows of logits, `stride` numbers apart.
struct LogitRows {
  const float* data;
  size_t width;
  size_t stride;
  int num_rows;

  std::span<const float> row(int index) const { return {data + index * stride, width}; }
};

// What is drawn of one sequence: a token after `first_row`, and after each row behind it as long as what was drawn is the
// next guess.
struct Draw {
  Sampler* sampler;
  int first_row;
  std::vector<int32_t> guesses;
  std::span<const uint8_t> allowed;  // as in Sampler::sample
  int num_logprobs;                  // how many of the most probable tokens to tell with each; -1: nothing of the kind
};

struct Drawn {
  std::vector<int32_t> token_ids;  // the guesses that were right, and one more
  std::vector<Logprobs> logprobs;  // of each, where they were asked for
};

// The draws of one sampler depend on nothing but its rows: where those are no numbers, only its own draw has no tokens.
// Throws std::invalid_argument for rows that are not there.
std::vector<Drawn> draw_all(const LogitRows& logits, const std::vector<Draw>& draws, const Kernels& kernels, ThreadPool& pool);

}  // namespace kaiwa
