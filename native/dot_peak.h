// How fast this machine multiplies bytes: what bounds the speed of reading prompts.
#pragma once

#include "kernels/kernels.h"

namespace kaiwa {

// Products of two bytes, each added to a sum, per second that `num_threads` threads together reach; best of some passes.
double dot_peak(int num_threads, const Kernels& kernels);

}  // namespace kaiwa
