#include "bandwidth.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "thread_pool.h"

namespace kaiwa {

double read_bandwidth(int num_threads, size_t num_bytes) {
  constexpr int passes = 8;
  constexpr size_t piece = 1 << 16, line = 8, ahead = 2048;  // words; as far ahead as the kernels fetch weights
  std::vector<uint64_t> memory(num_bytes / 8, 1);
  ThreadPool pool(num_threads);
  const int pieces = (int)((memory.size() + piece - 1) / piece);
  std::vector<uint64_t> sums(pieces);
  double best = 0;
  for (int i = 0; i < passes; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    pool.for_each(pieces, [&](int p) {
      uint64_t sum = 0;
      const size_t end = std::min(memory.size(), (p + 1) * piece);
      for (size_t j = p * piece; j < end; j += line) {
        __builtin_prefetch(memory.data() + j + ahead);
        for (size_t word = j; word < std::min(j + line, end); ++word) sum += memory[word];
      }
      sums[p] = sum;
    });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, (double)num_bytes / seconds);
  }
  return best;
}

}  // namespace kaiwa
