#include "kv_cache.h"

namespace kaiwa {

std::vector<KvCache::Layer> KvCache::lay_out(const std::vector<Shape>& shapes, bool is_single) {
  std::vector<Layer> layers;
  size_t at = 0;
  for (const Shape& shape : shapes) {
    const int padded_dim = (shape.head_dim + 15) / 16 * 16;
    const size_t head_bytes = (size_t)2 * cache_block_tokens * padded_dim * (is_single ? sizeof(float) : sizeof(uint16_t));
    layers.push_back({shape, padded_dim, at, head_bytes});
    at += shape.num_heads * head_bytes;
  }
  return layers;
}

KvCache::KvCache(const std::vector<Shape>& layers, int num_blocks, bool is_single)
    : layers_(lay_out(layers, is_single)), num_blocks_(num_blocks), is_single_(is_single),
      block_bytes_(layers_.empty() ? AddressSpace::page
                                   : AddressSpace::whole_pages(layers_.back().begin +
                                                               layers_.back().shape.num_heads * layers_.back().head_bytes)),
      memory_(block_bytes_ * num_blocks) {}

}  // namespace kaiwa
