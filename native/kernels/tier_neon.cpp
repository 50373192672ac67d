#include <arm_neon.h>

#include <cstring>

#include "kernels.h"

#define KAIWA_NEON

namespace kaiwa::neon {
#include "tier.h"
}  // namespace kaiwa::neon
