#include "address_space.h"

#include <cstring>
#include <new>

#if defined(_WIN32)
#include <windows.h>
#else
#include <sys/mman.h>
#endif

namespace kaiwa {

#if defined(_WIN32)

AddressSpace::AddressSpace(size_t bytes)
    : bytes_(bytes), data_(static_cast<uint8_t*>(VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE))) {
  if (!data_) throw std::bad_alloc();
}
AddressSpace::~AddressSpace() { VirtualFree(data_, 0, MEM_RELEASE); }
void AddressSpace::forget(size_t begin, size_t bytes) { memset(data_ + begin, 0, bytes); }

#else

AddressSpace::AddressSpace(size_t bytes) : bytes_(bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#if defined(MAP_NORESERVE)
  flags |= MAP_NORESERVE;
#endif
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<uint8_t*>(p);
}
AddressSpace::~AddressSpace() { munmap(data_, bytes_); }
void AddressSpace::forget(size_t begin, size_t bytes) { madvise(data_ + begin, bytes, MADV_DONTNEED); }

#endif

}  // namespace kaiwa
