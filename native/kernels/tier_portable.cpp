#include <cstring>

#include "../half.h"
#include "kernels.h"

namespace kaiwa::portable {
#include "tier.h"
}  // namespace kaiwa::portable
