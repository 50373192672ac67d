#include "checksum.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "thread_pool.h"

namespace kaiwa {
namespace {

constexpr size_t chunk_bytes = 1 << 18;
constexpr int num_lanes = 8;  // hide the multiplication's latency
constexpr uint64_t multiplier = 0x9E3779B97F4A7C15;  // odd, so that each step can be undone and loses nothing

uint64_t mix(uint64_t sum, uint64_t word) {
  const uint64_t product = (sum ^ word) * multiplier;
  return product << 29 | product >> 35;
}

uint64_t sum_chunk(const uint8_t* data, size_t num_bytes) {
  uint64_t sums[num_lanes] = {1, 2, 3, 4, 5, 6, 7, 8}, words[num_lanes];
  size_t at = 0;
  for (; at + sizeof words <= num_bytes; at += sizeof words) {
    memcpy(words, data + at, sizeof words);
    for (int i = 0; i < num_lanes; ++i) sums[i] = mix(sums[i], words[i]);
  }
  memset(words, 0, sizeof words);
  memcpy(words, data + at, num_bytes - at);
  uint64_t sum = num_bytes;
  for (int i = 0; i < num_lanes; ++i) sum = mix(mix(sum, sums[i]), words[i]);
  return sum;
}

}  // namespace

uint64_t checksum(const uint8_t* data, size_t num_bytes, ThreadPool& pool) {
  std::vector<uint64_t> sums((num_bytes + chunk_bytes - 1) / chunk_bytes);
  pool.for_each((int)sums.size(), [&](int i) {
    sums[i] = sum_chunk(data + i * chunk_bytes, std::min(chunk_bytes, num_bytes - i * chunk_bytes));
  });
  uint64_t sum = num_bytes;
  for (const uint64_t each : sums) sum = mix(sum, each);
  return sum;
}

}  // namespace kaiwa
