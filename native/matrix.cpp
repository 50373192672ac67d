#include "matrix.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "half.h"
#include "pack.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace kaiwa {
namespace {

constexpr size_t cache_line = 64, huge_page = 2 << 20;

// Memory that begins with a cache line; what is large, on pages of 2 MB where the system has them.
uint8_t* allocate(size_t size) {
  const size_t alignment = size >= huge_page ? huge_page : cache_line;
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  // Whole pages only: the rest of the last one would be memory that nobody asked for.
  if (size >= huge_page) madvise(memory, size / huge_page * huge_page, MADV_HUGEPAGE);
#endif
  return static_cast<uint8_t*>(memory);
}

// Block sizes: ggml's block structures, in the GGUF files' own documentation.
constexpr FormatInfo formats[num_formats + 1] = {
    {"F32", 1, 4},     {"F16", 1, 2},      {"BF16", 1, 2},     {"Q8_0", 32, 34},   {"Q4_0", 32, 18},  {"Q4_1", 32, 20},
    {"Q5_0", 32, 22},  {"Q5_1", 32, 24},   {"Q4_K", 256, 144}, {"Q5_K", 256, 176}, {"Q6_K", 256, 210}, {"Q2_K", 256, 84},
    {"Q3_K", 256, 110}, {"IQ4_NL", 32, 18}, {"IQ4_XS", 256, 136}, {"MXFP4", 32, 17}, {"Int8", 32, 0},  {"Int4", 32, 0},
    {"Float8", 1, 0},  {"Table4", 2, 0},   {"Q8_1", 32, 36},
};

// The stored, unsigned number of column c (0..31) of block b in lane r.
int read_quant(Format f, const PanelLayout& at, const uint8_t* panel, int b, int r, int c) {
  const auto pair = [&](const uint8_t* planes) { return planes[64 * (c / 16) + 4 * r + c % 4] >> 2 * (c / 4 % 4) & 3; };
  if (quant_bytes(f) == 512) return panel[512 * b + 64 * (c / 4) + 4 * r + c % 4];
  int q;
  if (quant_bytes(f) == 128) {
    q = pair(panel + 128 * b);
  } else {
    const uint8_t nibbles = panel[256 * b + 64 * (c / 4 % 4) + 4 * r + c % 4];
    q = c < 16 ? nibbles & 15 : nibbles >> 4;
  }
  if (has_codes(f)) return codes(f)[q];
  if (high_bytes(f) == 64)
    q |= (panel[at.high + 64 * b + 8 * (c / 4) + r / 2] >> (4 * (r % 2) + c % 4) & 1) << quant_bytes(f) / 64;
  if (high_bytes(f) == 128) q |= pair(panel + at.high + 128 * b) << 4;
  return q;
}

struct ScaleAndMin {
  float scale, min;
};

ScaleAndMin read_scale(Format f, const PanelLayout& at, const uint8_t* panel, int b, int r, int c) {
  const auto half = [&](size_t part, int block) { return f32_from_f16(read_half(panel + part + 32 * block + 2 * r)); };
  const auto byte = [&] { return panel[at.scales + scale_bytes(f) * b + (has_halves(f) ? 16 * (c / 16) : 0) + r]; };
  switch (f) {
    case Format::Q2_K: return {half(at.d, b / 8) * (byte() & 15), -(half(at.dmin, b / 8) * (byte() >> 4))};
    case Format::Q3_K:
    case Format::Q6_K:
    case Format::IQ4_XS: return {half(at.d, b / 8) * (int8_t)byte(), 0};
    case Format::Q4_K:
    case Format::Q5_K: return {half(at.d, b / 8) * byte(), -(half(at.dmin, b / 8) * panel[at.mins + 16 * b + r])};
    case Format::MXFP4: return {f32_from_e8m0(byte()), 0};
    case Format::Int8: return {read_float(panel + at.scales, r), 0};
    case Format::Int4: {
      const int group = b * block_columns / at.group;
      const float scale = half(at.scales, group);
      return {scale, -(scale * panel[at.mins + 16 * group + r])};
    }
    default: return {half(at.scales, b), has_min(f) ? half(at.mins, b) : 0};
  }
}

}  // namespace

const FormatInfo& info(Format format) { return formats[(int)format]; }

Format format_named(std::string_view name) {
  for (int f = 0; f <= num_formats; ++f)
    if (formats[f].name == name) return (Format)f;
  throw std::invalid_argument("there is no number format " + std::string(name));
}

void Matrix::Free::operator()(uint8_t* p) const { std::free(p); }

void Matrix::fail_not_finite(int row) {
  throw std::invalid_argument("row " + std::to_string(row) + " holds a number that is infinite or not a number");
}

Matrix::Matrix(Format format, int rows, int columns, int group) : format_(format), rows_(rows), columns_(columns) {
  if (rows <= 0 || columns <= 0 || columns % info(format).columns != 0)
    throw std::invalid_argument("a " + std::string(info(format).name) + " matrix cannot have " + std::to_string(rows) +
                                " rows of " + std::to_string(columns) + " columns");
  num_panels_ = (rows + panel_rows - 1) / panel_rows;
  layout_ = panel_layout(format, columns, group);
  data_.reset(allocate(num_panels_ * layout_.bytes));
}

Matrix::Matrix(Format format, const uint8_t* data, size_t num_bytes, int rows, int columns, ThreadPool& pool)
    : Matrix(format == Format::Q8_1 ? Format::Q8_0 : format, rows, columns, 0) {
  const FormatInfo& file = info(format);
  if (file.bytes == 0) throw std::invalid_argument("no single tensor makes a " + std::string(file.name) + " matrix");
  const size_t row_bytes = (size_t)columns / file.columns * file.bytes;
  if (num_bytes != row_bytes * rows)
    throw std::invalid_argument("a " + std::string(file.name) + " matrix of " + std::to_string(rows) + " x " +
                                std::to_string(columns) + " takes " + std::to_string(row_bytes * rows) + " bytes, not " +
                                std::to_string(num_bytes));
  fill(pool, [&](uint8_t* panel, int lane, int row) {
    return pack_row(format, layout_, panel, lane, data + row * row_bytes, columns);
  });
}

void Matrix::unpack_row(int row, float* out) const {
  const uint8_t* p = panel(row / panel_rows);
  const int r = row % panel_rows;
  const auto scale_of_group = [&](int c) { return read_float(p + layout_.scales, c / layout_.group * panel_rows + r); };
  for (int c = 0; c < columns_; ++c) {
    const size_t at = (size_t)c * panel_rows + r;
    switch (format_) {
      case Format::F32: memcpy(out + c, p + 4 * at, 4); break;
      case Format::F16: out[c] = f32_from_f16(read_half(p + 2 * at)); break;
      case Format::BF16: out[c] = f32_from_bf16(read_half(p + 2 * at)); break;
      case Format::Float8: out[c] = f32_from_e4m3(p[at]) * scale_of_group(c); break;
      case Format::Table4: {
        const uint8_t nibbles = p[c / 2 * panel_rows + r];
        out[c] = table[c % 2 ? nibbles >> 4 : nibbles & 15] * scale_of_group(c);
        break;
      }
      default: {
        const int b = c / block_columns, i = c % block_columns, zero = zero_point_bits(format_);
        const auto [scale, min] = read_scale(format_, layout_, p, b, r, i);
        const float product = scale * (float)(read_quant(format_, layout_, p, b, r, i) - (zero ? 1 << zero : 0));
        out[c] = has_min(format_) ? product + min : product;  // -0 stays -0
      }
    }
  }
}

}  // namespace kaiwa
