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

// Whether the processor has tiles for bytes, and the system lets this process use them.
static bool has_amx() {
  unsigned a, b, c, d;
  constexpr unsigned tile_and_int8 = 3u << 24;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & tile_and_int8) != tile_and_int8) return false;
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

void rotate(float* head, int num_pairs, bool interleaved, const float* cos, const float* sin) {
  const int step = interleaved ? 2 : 1, apart = interleaved ? 1 : num_pairs;
  for (int i = 0; i < num_pairs; ++i) {
    float& a = head[i * step];
    float& b = head[i * step + apart];
    const float x = a, y = b;
    a = x * cos[i] - y * sin[i];
    b = y * cos[i] + x * sin[i];
  }
}

}  // namespace kaiwa
