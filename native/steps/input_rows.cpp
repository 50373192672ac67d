#include "input_rows.h"

namespace kaiwa {
namespace {

int padded(int n) { return (n + 15) / 16 * 16; }

}  // namespace

void InputBuffer::fit(int rows, int columns, InputKind kind) {
  const size_t size = (size_t)rows * padded(columns), blocks = (size_t)rows * (columns / block_columns);
  if (kind.floats && floats_.size() < size) floats_.resize(size);
  if (kind.quants && quants_.size() < size) quants_.resize(size);
  if (kind.quants && scales_.size() < blocks) {
    scales_.resize(blocks), offsets_.resize(blocks), sums_.resize(blocks);
    negative_sums_.resize(2 * blocks);
  }
}

Inputs InputBuffer::from(int row, int columns) {
  const Inputs all{floats_.data(), (size_t)padded(columns), columns, quants_.data(), scales_.data(), offsets_.data(),
                   sums_.data(), negative_sums_.data()};
  return skip_rows(all, row);
}

Inputs skip_rows(const Inputs& in, int rows) {
  const size_t blocks = (size_t)rows * (in.columns / block_columns);
  const auto skip = [](auto* part, size_t count) { return part ? part + count : part; };
  return {skip(in.floats, rows * in.stride), in.stride, in.columns, skip(in.quants, (size_t)rows * in.columns),
          skip(in.scales, blocks), skip(in.offsets, blocks), skip(in.sums, blocks), skip(in.negative_sums, 2 * blocks)};
}

void copy_row(const Inputs& from, const Inputs& to, InputKind kind) {
  if (kind.floats) std::copy_n(from.floats, from.columns, const_cast<float*>(to.floats));
  if (!kind.quants) return;
  const int blocks = from.columns / block_columns;
  std::copy_n(from.quants, from.columns, to.quants);
  std::copy_n(from.scales, blocks, to.scales);
  std::copy_n(from.offsets, blocks, to.offsets);
  std::copy_n(from.sums, blocks, to.sums);
  std::copy_n(from.negative_sums, 2 * blocks, to.negative_sums);
}

void InputRows::reserve(int max_rows, int columns, bool is_precise) {
  const InputKind both{true, true};  // a norm writes floats, whatever the matrices are
  shared_.fit(is_precise ? 2 * max_rows : max_rows, columns, both);
  for (InputBuffer& buffer : private_) buffer.fit(2 * private_rows, columns, both);
}

void InputRows::stage_row(const Context& context, InputBuffer& to, int in, int row, const Vector& norm, float eps,
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
  InputBuffer& to = is_private ? private_[thread] : shared_;
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
