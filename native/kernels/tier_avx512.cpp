#include <immintrin.h>

#include <cstring>

#include "kernels.h"

#define KAIWA_AVX512

namespace kaiwa::avx512 {
#include "tier.h"
}  // namespace kaiwa::avx512
