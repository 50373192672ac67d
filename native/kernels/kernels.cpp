#include "kernels.h"

namespace kaiwa {

#if defined(__x86_64__)
namespace avx512 {
const Kernels* table(std::string_view name);
}
namespace avx2 {
const Kernels* table(std::string_view name);
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
    if (has_avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni"))
      found.push_back(avx512::table("avx512"));
    if (has_avx2) found.push_back(avx2::table("avx2"));
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
