#include "matrix.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "half.h"
#include "thread_pool.h"

namespace kaiwa {
namespace {

// Block sizes: ggml's block structures, in the GGUF files' own documentation.
constexpr FormatInfo table[num_formats] = {
    {"F32", 1, 4},    {"F16", 1, 2},    {"BF16", 1, 2},     {"Q8_0", 32, 34},    {"Q4_0", 32, 18},   {"Q4_1", 32, 20},
    {"Q5_0", 32, 22}, {"Q5_1", 32, 24}, {"Q4_K", 256, 144}, {"Q5_K", 256, 176}, {"Q6_K", 256, 210},
};

void copy_word(uint8_t* to, const uint8_t* from) { memcpy(to, from, 4); }

uint16_t read_half(const uint8_t* p) {
  uint16_t h;
  memcpy(&h, p, 2);
  return h;
}

void write_half(uint8_t* part, int index, const uint8_t* from) { memcpy(part + 2 * index, from, 2); }

// Where row r's bytes of the 64-byte vector v lie.
uint8_t* lane(uint8_t* quants, int v, int r) { return quants + 64 * v + 4 * r; }

// Sixteen bytes of which the low nibbles are columns 0..15 and the high ones 16..31, as ggml stores blocks of 32.
void pack_nibbles(uint8_t* quants, int r, const uint8_t* nibbles) {
  for (int v = 0; v < 4; ++v) copy_word(lane(quants, v, r), nibbles + 4 * v);
}

// One bit for each of 32 columns.
void pack_bits(uint8_t* high, int r, uint32_t bits) {
  for (int v = 0; v < 8; ++v) high[8 * v + r / 2] |= (uint8_t)((bits >> 4 * v & 15) << 4 * (r % 2));
}

void pack_q8_0(const PanelLayout& at, uint8_t* panel, int b, int r, const uint8_t* block) {
  write_half(panel + at.scales + 32 * b, r, block);
  for (int v = 0; v < 8; ++v) {
    uint32_t word;
    memcpy(&word, block + 2 + 4 * v, 4);
    word ^= 0x80808080;
    memcpy(lane(panel + 512 * b, v, r), &word, 4);
  }
}

void pack_q4(const PanelLayout& at, uint8_t* panel, int b, int r, const uint8_t* block, bool with_min) {
  write_half(panel + at.scales + 32 * b, r, block);
  if (with_min) write_half(panel + at.mins + 32 * b, r, block + 2);
  pack_nibbles(panel + 256 * b, r, block + (with_min ? 4 : 2));
}

void pack_q5(const PanelLayout& at, uint8_t* panel, int b, int r, const uint8_t* block, bool with_min) {
  const uint8_t* bits = block + (with_min ? 4 : 2);
  uint32_t high;
  memcpy(&high, bits, 4);
  write_half(panel + at.scales + 32 * b, r, block);
  if (with_min) write_half(panel + at.mins + 32 * b, r, block + 2);
  pack_nibbles(panel + 256 * b, r, bits + 4);
  pack_bits(panel + at.high + 64 * b, r, high);
}

// The j-th 6-bit scale and min of a Q4_K or Q5_K block: four of each in the low bits of bytes 0..7, the others in the
// nibbles of bytes 8..11 with their upper two bits above the first ones.
void read_scale_and_min(const uint8_t* s, int j, uint8_t& scale, uint8_t& min) {
  if (j < 4) {
    scale = s[j] & 63;
    min = s[j + 4] & 63;
  } else {
    scale = (uint8_t)((s[j + 4] & 15) | (s[j - 4] >> 6) << 4);
    min = (uint8_t)((s[j + 4] >> 4) | (s[j] >> 6) << 4);
  }
}

void pack_k45(Format f, const PanelLayout& at, uint8_t* panel, int super, int r, const uint8_t* block) {
  const uint8_t* scales = block + 4;
  const uint8_t* high = block + 16;
  const uint8_t* quants = block + (f == Format::Q5_K ? 48 : 16);
  write_half(panel + at.d + 32 * super, r, block);
  write_half(panel + at.dmin + 32 * super, r, block + 2);
  for (int j = 0; j < 8; ++j) {
    const int b = 8 * super + j;
    read_scale_and_min(scales, j, panel[at.scales + 16 * b + r], panel[at.mins + 16 * b + r]);
    const uint8_t* pairs = quants + 32 * (j / 2);  // low nibbles are block j even, high ones j odd
    uint8_t nibbles[16];
    for (int i = 0; i < 16; ++i) {
      const int shift = 4 * (j % 2);
      nibbles[i] = (uint8_t)((pairs[i] >> shift & 15) | (pairs[i + 16] >> shift & 15) << 4);
    }
    pack_nibbles(panel + 256 * b, r, nibbles);
    if (f == Format::Q5_K) {
      uint32_t bits = 0;
      for (int i = 0; i < 32; ++i) bits |= (uint32_t)(high[i] >> j & 1) << i;
      pack_bits(panel + at.high + 64 * b, r, bits);
    }
  }
}

// The 6-bit number of column c (0..255) of a Q6_K block.
int read_q6(const uint8_t* block, int c) {
  const int half = c / 128, in_half = c % 128, quarter = in_half / 32, i = in_half % 32;
  const uint8_t low = block[64 * half + 32 * (quarter % 2) + i];
  const uint8_t high = block[128 + 32 * half + i];
  return (low >> (quarter < 2 ? 0 : 4) & 15) | (high >> 2 * quarter & 3) << 4;
}

void pack_q6k(const PanelLayout& at, uint8_t* panel, int super, int r, const uint8_t* block) {
  write_half(panel + at.d + 32 * super, r, block + 208);
  for (int j = 0; j < 8; ++j) {
    const int b = 8 * super + j;
    uint8_t nibbles[16] = {};
    for (int c = 0; c < 32; ++c) {
      const int q = read_q6(block, 32 * j + c), v = c / 4;
      nibbles[c % 16] |= (uint8_t)((q & 15) << (c < 16 ? 0 : 4));
      // Vector v's two upper bits lie in plane v / 4 at position 2 * (v % 4).
      panel[at.high + 128 * b + 64 * (v / 4) + 4 * r + c % 4] |= (uint8_t)(q >> 4 << 2 * (v % 4));
    }
    pack_nibbles(panel + 256 * b, r, nibbles);
    for (int g = 0; g < 2; ++g) panel[at.scales + 32 * b + 16 * g + r] = block[192 + 2 * j + g];
  }
}

template <class T> void pack_floats(uint8_t* panel, int r, const uint8_t* row, int columns) {
  for (int c = 0; c < columns; ++c) memcpy(panel + ((size_t)c * panel_rows + r) * sizeof(T), row + c * sizeof(T), sizeof(T));
}

void pack_row(Format f, const PanelLayout& at, uint8_t* panel, int r, const uint8_t* row, int columns) {
  if (f == Format::F32) return pack_floats<uint32_t>(panel, r, row, columns);
  if (is_float(f)) return pack_floats<uint16_t>(panel, r, row, columns);
  const FormatInfo& file = info(f);
  for (int b = 0; b < columns / file.columns; ++b) {
    const uint8_t* block = row + (size_t)b * file.bytes;
    switch (f) {
      case Format::Q8_0: pack_q8_0(at, panel, b, r, block); break;
      case Format::Q4_0: pack_q4(at, panel, b, r, block, false); break;
      case Format::Q4_1: pack_q4(at, panel, b, r, block, true); break;
      case Format::Q5_0: pack_q5(at, panel, b, r, block, false); break;
      case Format::Q5_1: pack_q5(at, panel, b, r, block, true); break;
      case Format::Q4_K:
      case Format::Q5_K: pack_k45(f, at, panel, b, r, block); break;
      case Format::Q6_K: pack_q6k(at, panel, b, r, block); break;
      default: break;
    }
  }
}

// The stored, unsigned number of column c (0..31) of block b in lane r.
int read_quant(Format f, const PanelLayout& at, const uint8_t* panel, int b, int r, int c) {
  if (f == Format::Q8_0) return panel[512 * b + 64 * (c / 4) + 4 * r + c % 4];
  const uint8_t nibbles = panel[256 * b + 64 * (c / 4 % 4) + 4 * r + c % 4];
  int q = c < 16 ? nibbles & 15 : nibbles >> 4;
  if (high_bytes(f) == 64) q |= (panel[at.high + 64 * b + 8 * (c / 4) + r / 2] >> (4 * (r % 2) + c % 4) & 1) << 4;
  if (high_bytes(f) == 128) q |= (panel[at.high + 128 * b + 64 * (c / 16) + 4 * r + c % 4] >> 2 * (c / 4 % 4) & 3) << 4;
  return q;
}

struct ScaleAndMin {
  float scale, min;
};

ScaleAndMin read_scale(Format f, const PanelLayout& at, const uint8_t* panel, int b, int r, int c) {
  const auto half = [&](size_t part, int block) { return f32_from_f16(read_half(panel + part + 32 * block + 2 * r)); };
  if (f == Format::Q6_K) return {half(at.d, b / 8) * (int8_t)panel[at.scales + 32 * b + 16 * (c / 16) + r], 0};
  if (is_super(f)) {
    return {half(at.d, b / 8) * panel[at.scales + 16 * b + r], -(half(at.dmin, b / 8) * panel[at.mins + 16 * b + r])};
  }
  return {half(at.scales, b), has_min(f) ? half(at.mins, b) : 0};
}

}  // namespace

const FormatInfo& info(Format format) { return table[(int)format]; }

Format format_named(std::string_view name) {
  for (int f = 0; f < num_formats; ++f)
    if (table[f].name == name) return (Format)f;
  throw std::invalid_argument("there is no number format " + std::string(name));
}

void Matrix::Free::operator()(uint8_t* p) const { std::free(p); }

Matrix::Matrix(Format format, const uint8_t* data, size_t num_bytes, int rows, int columns, ThreadPool& pool)
    : format_(format), rows_(rows), columns_(columns) {
  const FormatInfo& file = info(format);
  if (rows <= 0 || columns <= 0 || columns % file.columns != 0)
    throw std::invalid_argument("a " + std::string(file.name) + " matrix cannot have " + std::to_string(rows) + " rows of " +
                                std::to_string(columns) + " columns");
  const size_t row_bytes = (size_t)columns / file.columns * file.bytes;
  if (num_bytes != row_bytes * rows)
    throw std::invalid_argument("a " + std::string(file.name) + " matrix of " + std::to_string(rows) + " x " +
                                std::to_string(columns) + " takes " + std::to_string(row_bytes * rows) + " bytes, not " +
                                std::to_string(num_bytes));
  num_panels_ = (rows + panel_rows - 1) / panel_rows;
  layout_ = panel_layout(format, columns);
  const size_t size = (num_panels_ * layout_.bytes + 63) / 64 * 64;
  data_.reset(static_cast<uint8_t*>(std::aligned_alloc(64, size)));
  if (!data_) throw std::bad_alloc();
  pool.for_each(num_panels_, [&](int p) {
    uint8_t* panel = data_.get() + p * layout_.bytes;
    memset(panel, 0, layout_.bytes);
    for (int r = 0; r < panel_rows && p * panel_rows + r < rows; ++r)
      pack_row(format, layout_, panel, r, data + (size_t)(p * panel_rows + r) * row_bytes, columns);
  });
}

void Matrix::unpack_row(int row, float* out) const {
  const uint8_t* p = panel(row / panel_rows);
  const int r = row % panel_rows;
  for (int c = 0; c < columns_; ++c) {
    const size_t at = (size_t)c * panel_rows + r;
    switch (format_) {
      case Format::F32: memcpy(out + c, p + 4 * at, 4); break;
      case Format::F16: out[c] = f32_from_f16(read_half(p + 2 * at)); break;
      case Format::BF16: out[c] = f32_from_bf16(read_half(p + 2 * at)); break;
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
