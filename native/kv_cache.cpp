#include "kv_cache.h"

#include <cstring>
#include <stdexcept>
#include <string>

namespace kaiwa {

std::vector<KvCache::Layer> KvCache::lay_out(const std::vector<Shape>& shapes, CacheFormat format) {
  std::vector<Layer> layers;
  size_t at = 0;
  for (const Shape& shape : shapes) {
    const int padded_dim = (shape.head_dim + 15) / 16 * 16;
    const size_t head_bytes = 2 * cache_head_bytes(format, padded_dim);
    layers.push_back({shape, padded_dim, at, head_bytes});
    at += shape.num_heads * head_bytes;
  }
  return layers;
}

KvCache::KvCache(const std::vector<Shape>& layers, int num_blocks, CacheFormat format)
    : layers_(lay_out(layers, format)), num_blocks_(num_blocks), format_(format),
      block_bytes_(layers_.empty() ? AddressSpace::page
                                   : AddressSpace::whole_pages(layers_.back().begin +
                                                               layers_.back().shape.num_heads * layers_.back().head_bytes)),
      memory_(block_bytes_ * num_blocks) {}

void KvCache::copy(int from, int to) { memcpy(block(to).data(), block(from).data(), block_bytes_); }

static int checked(const KvCache& cache, int block) {
  if (block < 0 || block >= cache.num_blocks()) throw std::out_of_range("there is no cache block " + std::to_string(block));
  return block;
}

void BlockTable::append(int block) { blocks_.push_back(checked(*cache_, block)); }

void BlockTable::replace(int index, int block) { blocks_.at(index) = checked(*cache_, block); }

void BlockTable::cut(int size) {
  if (size < 0 || size > this->size()) throw std::out_of_range("a table of blocks only gets shorter when it is cut");
  blocks_.resize(size);
}

}  // namespace kaiwa
