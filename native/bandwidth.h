// How fast this machine reads memory: what bounds the speed of decoding.
#pragma once

#include <cstddef>

namespace kaiwa {

// Bytes per second that `num_threads` threads together read from a buffer of `num_bytes`, best of some passes.
double read_bandwidth(int num_threads, size_t num_bytes);

}  // namespace kaiwa
