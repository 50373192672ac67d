#include "pack_parts.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "pack.h"

namespace kaiwa {
namespace {

void check_size(const char* part, size_t found, size_t expected) {
  if (found != expected)
    throw std::invalid_argument(std::string(part) + " should have " + std::to_string(expected) + " numbers, and have " +
                                std::to_string(found));
}

void check_count(const char* what, int count) {
  if (count <= 0) throw std::invalid_argument(std::string(what) + " of " + std::to_string(count) + " is impossible");
}

void check_range(const RowRange& range, int rows) {
  const bool fits = rows > 0 && range.first >= 0 && range.step > 0 && range[rows - 1] < (size_t)std::max(range.total, 0);
  if (!fits)
    throw std::invalid_argument(std::to_string(rows) + " rows from row " + std::to_string(range.first) + " are not among " +
                                std::to_string(range.total));
}

// The number at `index` of those of four bits, of which the first is lowest in its 32-bit word.
int read_nibble(PartBytes words, size_t index) { return words[index / 2] >> 4 * (index % 2) & 15; }

// weight(row, column) and zero(row, group) are the stored nibbles.
template <class Weight, class Zero>
std::shared_ptr<Matrix> pack_int4(const NibbleGroups& parts, int rows, int columns, RowRange range, ThreadPool& pool,
                                  const Weight& weight, const Zero& zero) {
  check_range(range, rows);
  check_count("a group", parts.group);
  if (parts.group % block_columns != 0)
    throw std::invalid_argument("groups of " + std::to_string(parts.group) + " columns are no multiple of 32");
  const size_t num_groups = ((size_t)columns + parts.group - 1) / parts.group;
  check_size("the weights", parts.weights.size() * 2, (size_t)range.total * columns);
  check_size("the zero points", parts.zeros.size() * 2, num_groups * range.total);
  check_size("the scales", parts.scales.size(), num_groups * range.total);
  auto matrix = std::make_shared<Matrix>(Format::Int4, rows, columns, parts.group);
  const PanelLayout& at = matrix->layout();
  matrix->fill(pool, [&](uint8_t* panel, int lane, int index) {
    const size_t row = range[index];
    for (int b = 0; b < columns / block_columns; ++b) {
      uint8_t numbers[block_columns];
      for (int i = 0; i < block_columns; ++i) numbers[i] = (uint8_t)weight(row, block_columns * b + i);
      pack_numbers(panel + 256 * b, lane, numbers);
    }
    bool is_whole = true;
    for (size_t g = 0; g < num_groups; ++g) {
      const uint16_t scale = f16_from_f32(parts.scales[g * range.total + row]);
      is_whole &= is_finite_half(scale);
      write_half(panel + at.scales + 32 * g, lane, scale);
      panel[at.mins + 16 * g + lane] = (uint8_t)(zero(row, g) + parts.zero_offset);
    }
    return is_whole;
  });
  return matrix;
}

}  // namespace

std::shared_ptr<Matrix> pack_int8(PartBytes weights, PartFloats scales, int rows, int columns, RowRange range, ThreadPool& pool) {
  check_range(range, rows);
  auto matrix = std::make_shared<Matrix>(Format::Int8, rows, columns, columns);
  check_size("the weights", weights.size(), (size_t)range.total * columns);
  check_size("the scales", scales.size(), range.total);
  const PanelLayout& at = matrix->layout();
  matrix->fill(pool, [&](uint8_t* panel, int lane, int index) {
    const size_t row = range[index];
    const uint8_t* from = weights.data() + row * columns;
    for (int c = 0; c < columns; ++c)
      lane_bytes(panel + 512 * (c / 32), c % 32 / 4, lane)[c % 4] = from[c] ^ 0x80;
    write_float(panel + at.scales, lane, scales[row]);
    return is_finite(scales[row]);
  });
  return matrix;
}

std::shared_ptr<Matrix> pack_gptq(const NibbleGroups& parts, int rows, int columns, RowRange range, ThreadPool& pool) {
  const size_t total = range.total;
  return pack_int4(
      parts, rows, columns, range, pool,
      [&](size_t row, int column) { return read_nibble(parts.weights, 8 * (column / 8 * total + row) + column % 8); },
      [&](size_t row, size_t group) { return read_nibble(parts.zeros, group * total + row); });
}

std::shared_ptr<Matrix> pack_awq(const NibbleGroups& parts, int rows, int columns, RowRange range, ThreadPool& pool) {
  static constexpr int place[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  const auto index = [&](size_t line, size_t row) { return line * range.total + row / 8 * 8 + place[row % 8]; };
  return pack_int4(
      parts, rows, columns, range, pool,
      [&](size_t row, int column) { return read_nibble(parts.weights, index(column, row)); },
      [&](size_t row, size_t group) { return read_nibble(parts.zeros, index(group, row)); });
}

std::shared_ptr<Matrix> pack_float8(PartBytes weights, PartFloats scales, int tile_rows, int tile_columns, int rows,
                                    int columns, RowRange range, ThreadPool& pool) {
  check_count("a tile's height", tile_rows);
  check_count("a tile's width", tile_columns);
  check_range(range, rows);
  auto matrix = std::make_shared<Matrix>(Format::Float8, rows, columns, tile_columns);
  const size_t across = ((size_t)columns + tile_columns - 1) / tile_columns;
  check_size("the weights", weights.size(), (size_t)range.total * columns);
  check_size("the scales", scales.size(), across * (((size_t)range.total + tile_rows - 1) / tile_rows));
  const PanelLayout& at = matrix->layout();
  matrix->fill(pool, [&](uint8_t* panel, int lane, int index) {
    const size_t row = range[index];
    bool is_whole = true;
    for (int c = 0; c < columns; ++c) {
      const uint8_t number = weights[row * columns + c];
      panel[(size_t)c * panel_rows + lane] = number;
      is_whole &= (number & 0x7F) != 0x7F;
    }
    for (size_t g = 0; g < across; ++g) {
      const float scale = scales[row / tile_rows * across + g];
      write_float(panel + at.scales + 64 * g, lane, scale);
      is_whole &= is_finite(scale);
    }
    return is_whole;
  });
  return matrix;
}

std::shared_ptr<Matrix> pack_table4(PartBytes weights, PartFloats table, PartFloats scales, int block, int rows, int columns,
                                    RowRange range, ThreadPool& pool) {
  check_count("a block", block);
  check_range(range, rows);
  check_size("the table", table.size(), 16);
  // Groups are pieces of rows that lie in one block, even where blocks run over the ends of rows.
  const int group = std::gcd(columns, block);
  auto matrix = std::make_shared<Matrix>(Format::Table4, rows, columns, group);
  if (group % 2 != 0) throw std::invalid_argument("blocks of " + std::to_string(block) + " columns are no multiple of 2");
  const size_t num_weights = (size_t)range.total * columns;
  check_size("the weights", weights.size() * 2, num_weights);
  check_size("the scales", scales.size(), (num_weights + block - 1) / block);
  bool is_table_whole = true;
  for (int i = 0; i < 16; ++i) is_table_whole &= is_finite(matrix->table[i] = table[i]);
  const PanelLayout& at = matrix->layout();
  matrix->fill(pool, [&](uint8_t* panel, int lane, int index) {
    const size_t row = range[index];
    bool is_whole = is_table_whole;
    const uint8_t* from = weights.data() + row * (columns / 2);
    for (int pair = 0; pair < columns / 2; ++pair)
      panel[pair * panel_rows + lane] = (uint8_t)(from[pair] >> 4 | from[pair] << 4);
    for (int g = 0; g < columns / group; ++g) {
      const float scale = scales[(row * columns + (size_t)g * group) / block];
      write_float(panel + at.scales + (size_t)64 * g, lane, scale);
      is_whole &= is_finite(scale);
    }
    return is_whole;
  });
  return matrix;
}

std::shared_ptr<Matrix> pack_mxfp4(PartBytes weights, PartBytes exponents, int rows, int columns, RowRange range, ThreadPool& pool) {
  check_range(range, rows);
  auto matrix = std::make_shared<Matrix>(Format::MXFP4, rows, columns, 0);
  const int blocks = columns / block_columns;
  check_size("the weights", weights.size() * 2, (size_t)range.total * columns);
  check_size("the exponents", exponents.size(), (size_t)range.total * blocks);
  const PanelLayout& at = matrix->layout();
  matrix->fill(pool, [&](uint8_t* panel, int lane, int index) {
    const size_t row = range[index];
    bool is_whole = true;
    for (int b = 0; b < blocks; ++b) {
      const size_t block = row * blocks + b;
      uint8_t numbers[block_columns];
      for (int i = 0; i < block_columns; ++i) numbers[i] = (uint8_t)read_nibble(weights, block_columns * block + i);
      pack_numbers(panel + 256 * b, lane, numbers);
      panel[at.scales + 16 * b + lane] = exponents[block];
      is_whole &= exponents[block] != 255;
    }
    return is_whole;
  });
  return matrix;
}

std::vector<float> unpack_nested(PartBytes indices, PartFloats table, PartFloats scales, int block, float offset) {
  check_count("a block", block);
  check_size("the table", table.size(), 256);
  check_size("the scales", scales.size(), (indices.size() + block - 1) / block);
  std::vector<float> numbers(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) numbers[i] = table[indices[i]] * scales[i / block] + offset;
  return numbers;
}

}  // namespace kaiwa
