// Keys and values of all layers, in half or single precision or in bytes, in blocks of 32 tokens. Who owns a block is decided in
// Python.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "address_space.h"
#include "kernels/kernels.h"

namespace kaiwa {

class KvCache {
 public:
  // What one layer keeps of a token; layers may differ.
  struct Shape {
    int num_heads, head_dim;
  };

  // A block takes memory when it is first written. Throws std::bad_alloc when not even addresses are left.
  KvCache(const std::vector<Shape>& layers, int num_blocks, CacheFormat format);

  int num_layers() const { return (int)layers_.size(); }
  int num_blocks() const { return num_blocks_; }
  size_t block_bytes() const { return block_bytes_; }
  const Shape& shape(int layer) const { return layers_[layer].shape; }
  int padded_dim(int layer) const { return layers_[layer].padded_dim; }
  CacheFormat format() const { return format_; }

  // (head_dim, 32): transposed. Of bytes, their scales follow.
  uint8_t* keys(int block, int layer, int head) const {
    return memory_.data() + block * block_bytes_ + layers_[layer].begin + head * layers_[layer].head_bytes;
  }
  // (32, padded_dim).
  uint8_t* values(int block, int layer, int head) const { return keys(block, layer, head) + layers_[layer].head_bytes / 2; }

  // All that a block holds, of every layer.
  std::span<uint8_t> block(int index) const { return {memory_.data() + index * block_bytes_, block_bytes_}; }
  void copy(int from, int to);
  // Gives the memory of a block that nobody owns back to the system; its contents are zero after.
  void discard(int block) { memory_.forget(block * block_bytes_, block_bytes_); }

 private:
  struct Layer {
    Shape shape;
    int padded_dim;
    size_t begin, head_bytes;  // in a block
  };
  static std::vector<Layer> lay_out(const std::vector<Shape>& shapes, CacheFormat format);

  std::vector<Layer> layers_;
  int num_blocks_;
  CacheFormat format_;
  size_t block_bytes_;
  AddressSpace memory_;
};

// The blocks of one sequence, for its positions 0.., so that a step is told of them once and not every time.
class BlockTable {
 public:
  explicit BlockTable(std::shared_ptr<const KvCache> cache) : cache_(std::move(cache)) {}

  const KvCache& cache() const { return *cache_; }
  int size() const { return (int)blocks_.size(); }
  // Throws std::out_of_range for an index or block that is not there.
  int at(int index) const { return blocks_.at(index); }
  int operator[](int index) const { return blocks_[index]; }
  void append(int block);
  void replace(int index, int block);
  void cut(int size);

 private:
  std::shared_ptr<const KvCache> cache_;
  std::vector<int> blocks_;
};

}  // namespace kaiwa
