#include "divergence.h"

#include <algorithm>
#include <cmath>

#include "thread_pool.h"

namespace kaiwa {
namespace {

double log_of_sum(const float* logits, size_t width, float largest) {
  double sum = 0;
  for (size_t i = 0; i < width; ++i) sum += std::exp(logits[i] - largest);
  return largest + std::log(sum);
}

Divergence diverge_row(const float* expected, const float* actual, int32_t target, size_t width) {
  const float* top_expected = std::max_element(expected, expected + width);
  const float* top_actual = std::max_element(actual, actual + width);
  const double norm_expected = log_of_sum(expected, width, *top_expected);
  const double norm_actual = log_of_sum(actual, width, *top_actual);
  double kl = 0;
  for (size_t i = 0; i < width; ++i) {
    const double log_p = expected[i] - norm_expected;
    kl += std::exp((float)log_p) * (log_p - (actual[i] - norm_actual));
  }
  return {kl, norm_expected - expected[target], norm_actual - actual[target], top_expected - expected == top_actual - actual};
}

}  // namespace

std::vector<Divergence> diverge(const float* expected, const float* actual, const std::vector<int32_t>& targets, size_t width,
                                ThreadPool& pool) {
  std::vector<Divergence> rows(targets.size());
  pool.for_each((int)targets.size(), [&](int r) {
    rows[r] = diverge_row(expected + r * width, actual + r * width, targets[r], width);
  });
  return rows;
}

}  // namespace kaiwa
