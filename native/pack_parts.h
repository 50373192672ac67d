// Matrices of checkpoints that were quantized before they were published: several tensors make one matrix.
//
// `rows` is how many the matrix has, `range` where they are among those of the parts. Every function throws std::invalid_argument when a part has not the size that rows and columns ask for, or a number is
// infinite or none. Scales come as single-precision numbers, whatever the file holds them in.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "matrix.h"

namespace kaiwa {

using PartBytes = std::span<const uint8_t>;
using PartFloats = std::span<const float>;

// Which of the rows that the parts hold a matrix has: first, first + step, and so on, of `total`. So a fused projection
// comes apart, and experts that lie one after another.
struct RowRange {
  int total;
  int first = 0;
  int step = 1;

  size_t operator[](int row) const { return first + (size_t)step * row; }
};

// weights (rows, columns) signed bytes, one scale per row.
std::shared_ptr<Matrix> pack_int8(PartBytes weights, PartFloats scales, int rows, int columns, RowRange range, ThreadPool& pool);

// Nibbles q of words of eight: weight = scale * (q - zero). Both hold columns in rows, that is, (columns, rows) numbers;
// GPTQ's words hold eight neighbouring columns, AWQ's eight rows in the order 0 2 4 6 1 3 5 7. `scales` are (groups,
// rows), `zeros` words (groups, rows / 8), to which GPTQ adds `zero_offset`. Scales are rounded to half precision, which
// is what checkpoints hold.
struct NibbleGroups {
  PartBytes weights, zeros;
  PartFloats scales;
  int group;
  int zero_offset;
};
std::shared_ptr<Matrix> pack_gptq(const NibbleGroups& parts, int rows, int columns, RowRange range, ThreadPool& pool);
std::shared_ptr<Matrix> pack_awq(const NibbleGroups& parts, int rows, int columns, RowRange range, ThreadPool& pool);

// weights (rows, columns) of e4m3, one scale per tile of `tile_rows` by `tile_columns`: (tiles down, tiles across).
std::shared_ptr<Matrix> pack_float8(PartBytes weights, PartFloats scales, int tile_rows, int tile_columns, int rows,
                                    int columns, RowRange range, ThreadPool& pool);

// Indices (rows, columns) into a table of sixteen numbers, the even column in the high nibble; `block` neighbouring
// weights, counted over the ends of rows, share a scale.
std::shared_ptr<Matrix> pack_table4(PartBytes weights, PartFloats table, PartFloats scales, int block, int rows, int columns,
                                    RowRange range, ThreadPool& pool);

// e2m1 numbers (rows, columns), the even column in the low nibble, and an exponent for every 32 columns.
std::shared_ptr<Matrix> pack_mxfp4(PartBytes weights, PartBytes exponents, int rows, int columns, RowRange range, ThreadPool& pool);

// table[index] * scales[i / block] + offset: how bitsandbytes stores the scales of a "double quantized" matrix.
std::vector<float> unpack_nested(PartBytes indices, PartFloats table, PartFloats scales, int block, float offset);

}  // namespace kaiwa
