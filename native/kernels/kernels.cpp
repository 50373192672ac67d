#include "kernels.h"

#if defined(KAIWA_HAS_AMX)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace kaiwa {

#if defined(__x86_64__)
#if defined(KAIWA_HAS_AMX)
namespace amx {
const Kernels* table(std::string_view name);
}

// Whether the processor has tiles for bytes and for bfloat16, and the system lets this process use them.
static bool has_amx() {
  unsigned a, b, c, d;
  constexpr unsigned tiles = 1u << 22 | 3u << 24, vectors_of_bf16 = 1u << 5;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & tiles) != tiles) return false;
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a & vectors_of_bf16)) return false;
  constexpr long request_permission = 0x1023, tile_data = 18;  // Linux: ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}
#endif
namespace avx512 {
const Kernels* table(std::string_view name);
}
namespace avx2 {
const Kernels* table(std::string_view name);
}
#elif defined(__aarch64__)
namespace neon {
const Kernels* table(std::string_view name);
}

static bool has_dot_product() {
#if defined(__linux__)
  constexpr unsigned long asimddp = 1 << 20;  // HWCAP_ASIMDDP
  return getauxval(AT_HWCAP) & asimddp;
#else
  return true;  // every Arm processor that Apple has sold computers with
#endif
}
#endif
namespace portable {
const Kernels* table(std::string_view name);
}

const std::vector<const Kernels*>& available_kernels() {
  static const std::vector<const Kernels*> tiers = [] {
    std::vector<const Kernels*> found;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
#if defined(KAIWA_HAS_AMX)
    if (has_avx512 && has_amx()) found.push_back(amx::table("amx"));
#endif
    if (has_avx512) found.push_back(avx512::table("avx512"));
    if (has_avx2) found.push_back(avx2::table("avx2"));
#elif defined(__aarch64__)
    if (has_dot_product()) found.push_back(neon::table("neon"));
#endif
    found.push_back(portable::table("portable"));
    return found;
  }();
  return tiers;
}

// Pair i is a[i * step] and b[i * step]: a constant step lets the compiler take several at once.
template <int step>
static void rotate_pairs(float* __restrict a, float* __restrict b, int num_pairs, const float* __restrict cos,
                         const float* __restrict sin) {
  for (int i = 0; i < num_pairs; ++i) {
    const float x = a[i * step], y = b[i * step];
    a[i * step] = x * cos[i] - y * sin[i];
    b[i * step] = y * cos[i] + x * sin[i];
  }
}

void rotate(float* head, int num_pairs, bool interleaved, const float* cos, const float* sin) {
  if (interleaved) rotate_pairs<2>(head, head + 1, num_pairs, cos, sin);
  else rotate_pairs<1>(head, head + num_pairs, num_pairs, cos, sin);
}

}  // namespace kaiwa
