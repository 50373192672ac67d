// Products of the rows of prompts in bfloat16, where the tier and all matrices of a step allow it.
#pragma once

#include "step.h"

namespace kaiwa {

// Whether a tier multiplies the rows of prompts with such a matrix in bfloat16.
inline bool takes_tiles(const Kernels& kernels, const Matrix& matrix) { return kernels.tiled_panels[(int)matrix.format()]; }

// What threads take at once: neighbouring panels, so many that the inputs are not fetched anew for each pair of them.
class TiledChunks {
 public:
  static constexpr int max_panels = 8;

  TiledChunks(int num_panels, int num_threads)
      : num_panels_(num_panels), size_(std::clamp(num_panels / (8 * num_threads) / 2 * 2, 2, max_panels)) {}
  int count() const { return (num_panels_ + size_ - 1) / size_; }
  int first_panel(int chunk) const { return chunk * size_; }
  int num_panels(int chunk) const { return std::min(size_, num_panels_ - first_panel(chunk)); }

 private:
  int num_panels_, size_;
};

}  // namespace kaiwa
