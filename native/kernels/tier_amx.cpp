#include <immintrin.h>

#include <cstring>

#include "kernels.h"

#define KAIWA_AVX512
#define KAIWA_AMX

namespace kaiwa::amx {
#include "tier.h"
}  // namespace kaiwa::amx
