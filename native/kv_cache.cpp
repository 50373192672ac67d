#include "kv_cache.h"

#include <new>

#if defined(_WIN32)
#include <windows.h>
#else
#include <sys/mman.h>
#endif

namespace kaiwa {
namespace {

constexpr size_t page = 4096;

#if defined(_WIN32)
uint8_t* reserve(size_t bytes) {
  return static_cast<uint8_t*>(VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}
void release(uint8_t* p, size_t) { VirtualFree(p, 0, MEM_RELEASE); }
void forget(uint8_t* p, size_t bytes) { memset(p, 0, bytes); }
#else
uint8_t* reserve(size_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#if defined(MAP_NORESERVE)
  flags |= MAP_NORESERVE;
#endif
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<uint8_t*>(p);
}
void release(uint8_t* p, size_t bytes) { munmap(p, bytes); }
void forget(uint8_t* p, size_t bytes) { madvise(p, bytes, MADV_DONTNEED); }
#endif

}  // namespace

KvCache::KvCache(int num_layers, int num_heads, int head_dim, int num_blocks, bool is_single)
    : num_heads_(num_heads), padded_dim_((head_dim + 15) / 16 * 16), num_blocks_(num_blocks), is_single_(is_single) {
  head_bytes_ = (size_t)2 * cache_block_tokens * padded_dim_ * (is_single ? sizeof(float) : sizeof(uint16_t));
  block_bytes_ = (num_layers * num_heads_ * head_bytes_ + page - 1) / page * page;
  memory_ = reserve(block_bytes_ * num_blocks_);
  if (!memory_) throw std::bad_alloc();
}

KvCache::~KvCache() { release(memory_, block_bytes_ * num_blocks_); }

void KvCache::discard(int block) { forget(memory_ + block * block_bytes_, block_bytes_); }

}  // namespace kaiwa
