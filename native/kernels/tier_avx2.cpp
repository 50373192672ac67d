#include <immintrin.h>

#include <cstring>

#include "kernels.h"

#define KAIWA_AVX2

namespace kaiwa::avx2 {
#include "tier.h"
}  // namespace kaiwa::avx2
