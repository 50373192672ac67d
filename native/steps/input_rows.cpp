#include "input_rows.h"

namespace kaiwa {
namespace {

int padded(int n) { return divided_up(n, 16) * 16; }

}  // namespace

void InputBuffer::fit(int rows, int columns, InputKind kind) {
  const size_t size = (size_t)rows * padded(columns);
  const size_t num_blocks = (size_t)divided_up(rows, block_rows) * (columns / block_columns);
  if (kind.floats && floats_.size() < size) floats_.resize(size);
  if (kind.quants && blocks_.size() < num_blocks) blocks_.resize(num_blocks);
  const size_t num_tiles = (size_t)divided_up(rows, block_rows) * divided_up(columns, block_columns) * kind.num_parts();
  if (kind.tiles && tiles_.size() < num_tiles) tiles_.resize(num_tiles);
}

Inputs InputBuffer::from(int row, int columns) {
  return skip_rows({floats_.data(), (size_t)padded(columns), columns, blocks_.data(), columns / block_columns, 0}, row);
}

TiledInputs InputBuffer::tiled(int columns, InputKind kind) {
  return {tiles_.data(), divided_up(columns, block_columns), kind.num_parts()};
}

Inputs skip_rows(const Inputs& in, int rows) {
  Inputs rest = in;
  if (in.floats) rest.floats += rows * in.stride;
  rest.first_row += rows;
  return rest;
}

void copy_row(const Inputs& from, const Inputs& to, InputKind kind) {
  if (kind.floats) std::copy_n(from.floats, from.columns, const_cast<float*>(to.floats));
  if (!kind.quants) return;
  const InputBlock* source = from.row_blocks(0);
  InputBlock* target = to.row_blocks(0);
  const int s = from.first_row % block_rows, t = to.first_row % block_rows;
  for (int b = 0; b < from.columns / block_columns; ++b, ++source, ++target) {
    std::copy_n(source->quants[s], block_columns, target->quants[t]);
    target->rows[t] = source->rows[s];
  }
}

void InputRows::reserve(int max_rows, int columns, InputKind kind) {
  const InputKind both{true, true};  // a norm writes floats, whatever the matrices are
  shared_.fit(kind.is_precise ? 2 * max_rows : max_rows, columns, both);
  shared_.fit(max_rows, columns, kind);
  if (kind.tiles)
    for (std::vector<float>& products : products_)
      products.resize(std::max(products.size(), (size_t)2 * max_rows * TiledChunks::max_panels * panel_rows));
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
  const int num_untiled = kind.num_untiled(context);
  if (row >= num_untiled) return context.kernels->fill_tiles(x, columns, to.tiled(columns, kind), row - num_untiled);
  if (!kind.quants) return;
  const Inputs rest = to.from(num_untiled + row, columns);
  float* residual = kind.is_precise ? const_cast<float*>(rest.floats) : nullptr;
  context.kernels->quantize(x, here, residual);
  if (residual) context.kernels->quantize(residual, rest, nullptr);
}

Inputs InputRows::stage(const Context& context, int in, const Vector& norm, float eps, InputKind kind, int thread,
                        Counter& counter) {
  const bool is_tiled = kind.num_untiled(context) < context.rows, is_private = context.rows <= private_rows && !is_tiled;
  InputBuffer& to = is_private ? private_[thread] : shared_;
  const auto stage_one = [&](int r) { stage_row(context, to, in, r, norm, eps, kind); };
  if (is_private) {
    for (int r = 0; r < context.rows; ++r) stage_one(r);
  } else if (norm || kind.quants || is_tiled) {
    counter.share(context.rows, 4, stage_one);
    context.pool->barrier();
  }
  Inputs inputs = to.from(0, context.slot(in).width);
  if (kind.floats && !norm) inputs.floats = context.row(in, 0), inputs.stride = context.slot(in).padded;
  return inputs;
}

}  // namespace kaiwa
