// A weight matrix, packed once for the kernels.
//
// Sixteen rows make a panel. Within a panel, four neighbouring columns of the sixteen rows are 64 bytes in a row, which
// is what one dot-product instruction takes, so that a kernel reads memory strictly forward. A packed matrix is as large
// as the file's own tensor (Q4_K and Q5_K: 3 % more, since their 6-bit scales become bytes), and no bit of a weight is
// lost: unpacking gives exactly the numbers that the file's format means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace kaiwa {

class ThreadPool;

enum class Format { F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K };
inline constexpr int num_formats = 11;

constexpr int panel_rows = 16;
constexpr int block_columns = 32;

constexpr bool is_float(Format f) { return f == Format::F32 || f == Format::F16 || f == Format::BF16; }
constexpr bool is_super(Format f) { return f == Format::Q4_K || f == Format::Q5_K || f == Format::Q6_K; }
constexpr bool has_min(Format f) {
  return f == Format::Q4_1 || f == Format::Q5_1 || f == Format::Q4_K || f == Format::Q5_K;
}
// What is taken from the stored, unsigned number to get the signed one, as a power of two; 0 for none.
constexpr int zero_point_bits(Format f) {
  switch (f) {
    case Format::Q8_0: return 7;
    case Format::Q4_0: return 3;
    case Format::Q5_0: return 4;
    case Format::Q6_K: return 5;
    default: return 0;
  }
}
// Bytes that 32 columns of a panel take: quants (nibbles or bytes), then the bits above the nibble.
constexpr int quant_bytes(Format f) { return f == Format::Q8_0 ? 512 : 256; }
constexpr int high_bytes(Format f) {
  if (f == Format::Q5_0 || f == Format::Q5_1 || f == Format::Q5_K) return 64;
  return f == Format::Q6_K ? 128 : 0;
}

struct FormatInfo {
  std::string_view name;
  int columns;  // of one block in the file
  int bytes;    // of one block in the file
};
const FormatInfo& info(Format format);
// Throws std::invalid_argument for a name that is not in the table.
Format format_named(std::string_view name);

// Where the parts of one panel begin, in bytes. Super-block formats hold one-byte scales and mins per block in `scales`
// and `mins`, and what multiplies them in `d` and `dmin`; the others hold half-precision scales and mins.
struct PanelLayout {
  size_t high = 0, scales = 0, mins = 0, d = 0, dmin = 0, bytes = 0;
};
constexpr PanelLayout panel_layout(Format f, int columns) {
  PanelLayout p;
  if (is_float(f)) {
    p.bytes = (size_t)columns * panel_rows * (f == Format::F32 ? 4 : 2);
    return p;
  }
  const size_t blocks = columns / block_columns;
  size_t at = blocks * quant_bytes(f);
  p.high = at, at += blocks * high_bytes(f);
  p.scales = at, at += blocks * (f == Format::Q6_K ? 32 : is_super(f) ? 16 : 32);
  p.mins = at, at += blocks * (has_min(f) ? (is_super(f) ? 16 : 32) : 0);
  if (is_super(f)) {
    p.d = at, at += blocks / 8 * 32;
    p.dmin = at, at += blocks / 8 * (has_min(f) ? 32 : 0);
  }
  p.bytes = (at + 63) / 64 * 64;
  return p;
}

class Matrix {
 public:
  // `data` are the tensor's bytes as a GGUF or safetensors file holds them, row by row.
  // Throws std::invalid_argument when sizes do not fit each other.
  Matrix(Format format, const uint8_t* data, size_t num_bytes, int rows, int columns, ThreadPool& pool);

  Format format() const { return format_; }
  int rows() const { return rows_; }
  int columns() const { return columns_; }
  int num_panels() const { return num_panels_; }
  size_t num_bytes() const { return num_panels_ * layout_.bytes; }
  const PanelLayout& layout() const { return layout_; }
  const uint8_t* panel(int index) const { return data_.get() + index * layout_.bytes; }

  // Writes one row's `columns()` weights to `out`.
  void unpack_row(int row, float* out) const;

 private:
  struct Free {
    void operator()(uint8_t* p) const;
  };
  Format format_;
  int rows_, columns_, num_panels_;
  PanelLayout layout_;
  std::unique_ptr<uint8_t[], Free> data_;
};

}  // namespace kaiwa
