#include "input_rows.h"

namespace kaiwa {
namespace {

// Few enough rows that every thread prepares them for itself rather than waiting for the others.
constexpr int private_rows = 2;

int padded(int n) { return (n + 15) / 16 * 16; }

}  // namespace

void InputRows::Buffers::fit(int rows, int columns) {
  const size_t size = (size_t)rows * padded(columns), blocks = (size_t)rows * (columns / block_columns);
  if (floats.size() < size) floats.resize(size), quants.resize(size);
  if (scales.size() < blocks) {
    scales.resize(blocks), offsets.resize(blocks), sums.resize(blocks);
    negative_sums.resize(2 * blocks);
  }
}

Inputs InputRows::Buffers::from(int row, int columns) {
  const size_t block = (size_t)row * (columns / block_columns);
  return {floats.data() + (size_t)row * padded(columns), (size_t)padded(columns), columns,
          quants.data() + (size_t)row * columns, scales.data() + block, offsets.data() + block, sums.data() + block,
          negative_sums.data() + 2 * block};
}

void InputRows::reserve(int max_rows, int columns, bool is_precise) {
  shared_.fit(is_precise ? 2 * max_rows : max_rows, columns);
  for (Buffers& buffers : private_) buffers.fit(2 * private_rows, columns);
}

void InputRows::stage_row(const Context& context, Buffers& to, int in, int row, const Vector& norm, float eps,
                          InputKind kind) const {
  const int columns = context.slot(in).width;
  const Inputs here = to.from(row, columns);
  const float* x = context.row(in, row);
  if (norm) {
    // The padding of x and of the weight is zero, so it adds nothing; the mean is over `columns`.
    float* normed = const_cast<float*>(here.floats);
    context.kernels->rms_norm(x, norm->data(), eps, columns, normed);
    x = normed;
  }
  if (!kind.quants) return;
  const Inputs rest = to.from(context.rows + row, columns);
  float* residual = kind.is_precise ? const_cast<float*>(rest.floats) : nullptr;
  context.kernels->quantize(x, here, residual);
  if (residual) context.kernels->quantize(residual, rest, nullptr);
}

Inputs InputRows::stage(const Context& context, int in, const Vector& norm, float eps, InputKind kind, int thread,
                        Counter& counter) {
  const bool is_private = context.rows <= private_rows;
  Buffers& to = is_private ? private_[thread] : shared_;
  const auto stage_one = [&](int r) { stage_row(context, to, in, r, norm, eps, kind); };
  if (is_private) {
    for (int r = 0; r < context.rows; ++r) stage_one(r);
  } else if (norm || kind.quants) {
    counter.share(context.rows, 4, stage_one);
    context.pool->barrier();
  }
  Inputs inputs = to.from(0, context.slot(in).width);
  if (kind.floats && !norm) inputs.floats = context.row(in, 0), inputs.stride = context.slot(in).padded;
  return inputs;
}

}  // namespace kaiwa
