// Keys and values of all layers, in half or single precision, in blocks of 32 tokens. Who owns a block is decided in
// Python.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace kaiwa {

class KvCache {
 public:
  // Reserves address space only: a block takes memory when it is first written.
  // Throws std::bad_alloc when even that fails.
  KvCache(int num_layers, int num_heads, int head_dim, int num_blocks, bool is_single);
  ~KvCache();
  KvCache(const KvCache&) = delete;

  int num_blocks() const { return num_blocks_; }
  size_t block_bytes() const { return block_bytes_; }
  int padded_dim() const { return padded_dim_; }
  bool is_single() const { return is_single_; }

  // (head_dim, 32): transposed.
  uint8_t* keys(int block, int layer, int head) const {
    return memory_ + block * block_bytes_ + (layer * num_heads_ + head) * head_bytes_;
  }
  // (32, padded_dim).
  uint8_t* values(int block, int layer, int head) const { return keys(block, layer, head) + head_bytes_ / 2; }

  // Gives the memory of a block that nobody owns back to the system; its contents are zero after.
  void discard(int block);

 private:
  int num_heads_, padded_dim_, num_blocks_;
  bool is_single_;
  size_t head_bytes_, block_bytes_;
  uint8_t* memory_;
};

}  // namespace kaiwa
