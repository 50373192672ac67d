// Rounds the floating-point weights of a file to blocks of 8, 5 or 4 bits, as a GGUF file holds them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "matrix.h"

namespace kaiwa {

// `data` are `count` numbers of the format `from` (F32, F16 or BF16), a multiple of 32; `out` takes
// count / 32 * info(to).bytes bytes. `to` is Q8_0, Q5_1 or Q4_1. The result is the same on every processor and for any number
// of threads. Returns false where a number is not finite, or too large for a scale in half precision; `out` is of no
// use then. Throws std::invalid_argument for other formats.
bool quantize(Format from, const uint8_t* data, size_t count, Format to, uint8_t* out, ThreadPool& pool);

}  // namespace kaiwa
