// Products of the rows of prompts in bfloat16, where the tier and all matrices of a step allow it.
#pragma once

#include "step.h"

namespace kaiwa {

// Whether a tier multiplies the rows of prompts with such a matrix in bfloat16.
inline bool takes_tiles(const Kernels& kernels, const Matrix& matrix) { return kernels.tiled_panels[(int)matrix.format()]; }

inline int divided_up(int n, int by) { return (n + by - 1) / by; }

// What threads take at once: neighbouring panels, an even number of them. As many as keep inputs near while they are used,
// and few enough that the last ones keep nobody waiting.
class TiledChunks {
 public:
  static constexpr int max_panels = 16;

  TiledChunks(int num_panels, int num_threads) : num_panels_(num_panels) {
    const int per_thread = std::max(4, divided_up(num_panels, max_panels * num_threads));
    size_ = 2 * divided_up(num_panels, 2 * per_thread * num_threads);
  }
  int count() const { return divided_up(num_panels_, size_); }
  int first_panel(int chunk) const { return chunk * size_; }
  int num_panels(int chunk) const { return std::min(size_, num_panels_ - first_panel(chunk)); }

 private:
  int num_panels_, size_;
};

}  // namespace kaiwa
