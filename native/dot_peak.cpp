#include "dot_peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "thread_pool.h"

namespace kaiwa {

double dot_peak(int num_threads, const Kernels& kernels) {
  constexpr int passes = 8, count = 1600000;
  constexpr double products = (double)count * 64;
  ThreadPool pool(num_threads);
  std::vector<int32_t> sums(num_threads);
  double best = 0;
  for (int i = 0; i < passes; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    pool.run([&](int thread) { kernels.multiply_bytes(count, &sums[thread]); });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, num_threads * products / seconds);
  }
  return best;
}

}  // namespace kaiwa
