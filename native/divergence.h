// How far one model's predictions lie from another's, and from what the text really says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kaiwa {

class ThreadPool;

// For one token. Everything in nats.
struct Divergence {
  double kl;             // KL(expected || actual) of the next token's distributions (Kullback and Leibler 1951)
  double expected_loss;  // -log p(target) by the expected logits
  double actual_loss;    // the same by the actual ones
  bool has_same_top;     // whether both hold the same token for the most probable
};

// `expected` and `actual` are logits, one row of `width` numbers for each of the `targets`.
std::vector<Divergence> diverge(const float* expected, const float* actual, const std::vector<int32_t>& targets, size_t width,
                                ThreadPool& pool);

}  // namespace kaiwa
