#include "state_cache.h"

#include <algorithm>
#include <cstring>

namespace kaiwa {
namespace {

std::vector<size_t> begins_of(const std::vector<size_t>& layers) {
  std::vector<size_t> begins{0};
  for (size_t size : layers) begins.push_back(begins.back() + (size + 15) / 16 * 16);
  return begins;
}

}  // namespace

StateCache::StateCache(const std::vector<size_t>& layers, int num_slots)
    : begins_(begins_of(layers)), num_slots_(num_slots),
      slot_bytes_(AddressSpace::whole_pages(std::max<size_t>(1, begins_.back() * sizeof(float)))),
      memory_(slot_bytes_ * std::max(1, num_slots)) {}

void StateCache::copy(int from, int to) {
  memcpy(memory_.data() + to * slot_bytes_, memory_.data() + from * slot_bytes_, begins_.back() * sizeof(float));
}

}  // namespace kaiwa
