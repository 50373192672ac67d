// What recurrent layers remember of a sequence: some numbers per layer, however many tokens there were. Who owns a slot
// is decided in Python.
#pragma once

#include <span>
#include <vector>

#include "address_space.h"

namespace kaiwa {

class StateCache {
 public:
  // `layers` are the numbers that each layer keeps. A slot takes memory when it is first written. Throws std::bad_alloc
  // when not even addresses are left.
  StateCache(const std::vector<size_t>& layers, int num_slots);

  int num_layers() const { return (int)begins_.size() - 1; }
  int num_slots() const { return num_slots_; }
  size_t slot_bytes() const { return slot_bytes_; }
  size_t size(int layer) const { return begins_[layer + 1] - begins_[layer]; }
  float* state(int slot, int layer) const {
    return reinterpret_cast<float*>(memory_.data() + slot * slot_bytes_) + begins_[layer];
  }

  std::span<uint8_t> whole(int slot) const { return {memory_.data() + slot * slot_bytes_, slot_bytes_}; }
  void copy(int from, int to);
  // Gives the memory of a slot that nobody owns back to the system.
  void discard(int slot) { memory_.forget(slot * slot_bytes_, slot_bytes_); }

 private:
  std::vector<size_t> begins_;  // of each layer in a slot, and where the last one ends; in numbers
  int num_slots_;
  size_t slot_bytes_;
  AddressSpace memory_;
};

}  // namespace kaiwa
