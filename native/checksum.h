// A number that changes when any byte does: tells a damaged file from a whole one, at the speed of memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kaiwa {

class ThreadPool;

// Not cryptographic: against disks and cut copies, not against people. A change within any one word of eight bytes is
// always noticed. The result is the same for any number of threads.
uint64_t checksum(const uint8_t* data, size_t num_bytes, ThreadPool& pool);

}  // namespace kaiwa
