// A weight matrix, packed once for the kernels.
//
// Sixteen rows make a panel. Within a panel, four neighbouring columns of the sixteen rows are 64 bytes in a row, which
// is what one dot-product instruction takes, so that a kernel reads memory strictly forward. A packed matrix is as large
// as the file's own tensor (up to 4 % more where its 6-bit scales become bytes; `docs/architecture.md` lists the rest),
// and no bit of a weight is lost: unpacking gives exactly the numbers that the file's format means.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "thread_pool.h"

namespace kaiwa {

// The last four are what safetensors checkpoints that were quantized before they were published become: bytes with a
// scale per row, nibbles with a scale and a whole zero point per group, e4m3 numbers with a scale per group, and indices
// into a table of sixteen numbers with a scale per group. A file's Q8_1 is packed as Q8_0.
enum class Format {
  F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K, Q2_K, Q3_K, IQ4_NL, IQ4_XS, MXFP4,
  Int8, Int4, Float8, Table4, Q8_1
};
inline constexpr int num_formats = 20;  // that kernels know

constexpr int panel_rows = 16;
constexpr int block_columns = 32;

constexpr bool is_plain(Format f) { return f == Format::F32 || f == Format::F16 || f == Format::BF16; }
// Whether products are of floats, and not of inputs rounded to 8 bits.
constexpr bool is_float(Format f) { return is_plain(f) || f == Format::Float8 || f == Format::Table4; }
// One-byte scales per block, and what multiplies them per 256 columns.
constexpr bool is_super(Format f) {
  return f == Format::Q2_K || f == Format::Q3_K || f == Format::Q4_K || f == Format::Q5_K || f == Format::Q6_K ||
         f == Format::IQ4_XS;
}
// Two scales per block, of its sixteen first and sixteen last columns.
constexpr bool has_halves(Format f) { return f == Format::Q2_K || f == Format::Q3_K || f == Format::Q6_K; }
constexpr bool has_min(Format f) {
  return f == Format::Q4_1 || f == Format::Q5_1 || f == Format::Q2_K || f == Format::Q4_K || f == Format::Q5_K ||
         f == Format::Int4;
}
// What is taken from the stored, unsigned number to get the signed one, as a power of two; 0 for none.
constexpr int zero_point_bits(Format f) {
  switch (f) {
    case Format::Q8_0:
    case Format::Int8:
    case Format::IQ4_NL:
    case Format::IQ4_XS: return 7;
    case Format::Q3_K: return 2;
    case Format::Q4_0: return 3;
    case Format::Q5_0:
    case Format::MXFP4: return 4;
    case Format::Q6_K: return 5;
    default: return 0;
  }
}
// Whether stored numbers exceed 127.
constexpr bool is_wide(Format f) { return zero_point_bits(f) == 7; }

// The sixteen numbers that nibbles stand for, with the zero point added, in formats that have codes.
// IQ4_NL's and e2m1's (doubled): ggml/src/ggml-common.h, and the OCP Microscaling Formats specification 1.0.
inline constexpr uint8_t iq4_codes[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
inline constexpr uint8_t e2m1_codes[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};
constexpr bool has_codes(Format f) { return f == Format::IQ4_NL || f == Format::IQ4_XS || f == Format::MXFP4; }
constexpr const uint8_t* codes(Format f) { return f == Format::MXFP4 ? e2m1_codes : iq4_codes; }

// Bytes that 32 columns of a panel take: quants (pairs of bits, nibbles or bytes), then the bits above them.
constexpr int quant_bytes(Format f) {
  if (f == Format::Q8_0 || f == Format::Int8 || f == Format::Float8) return 512;
  return f == Format::Q2_K || f == Format::Q3_K ? 128 : 256;
}
constexpr int high_bytes(Format f) {
  if (f == Format::Q5_0 || f == Format::Q5_1 || f == Format::Q5_K || f == Format::Q3_K) return 64;
  return f == Format::Q6_K ? 128 : 0;
}
// Bytes of the scales, and of the mins, of one block. Q2_K's are nibbles of the same byte.
constexpr int scale_bytes(Format f) {
  if (f == Format::MXFP4) return 16;
  return is_super(f) && !has_halves(f) ? 16 : 32;
}
constexpr int min_bytes(Format f) {
  if (!has_min(f) || f == Format::Q2_K) return 0;
  return is_super(f) ? 16 : 32;
}

struct FormatInfo {
  std::string_view name;
  int columns;  // of one block in the file
  int bytes;    // of one block in the file; 0 for what several tensors make
};
const FormatInfo& info(Format format);
// Throws std::invalid_argument for a name that is not in the table.
Format format_named(std::string_view name);

// Where the parts of one panel begin, in bytes. Super-block formats hold one-byte scales and mins per block in `scales`
// and `mins`, and what multiplies them in `d` and `dmin`; MXFP4's scales are exponents. Int8 holds 16 single-precision
// scales, Float8 and Table4 as many per group, Int4 half-precision scales and one-byte zero points (in `mins`) per group.
// The others hold half-precision scales and mins per block.
struct PanelLayout {
  size_t high = 0, scales = 0, mins = 0, d = 0, dmin = 0, bytes = 0;
  int group = 0;  // columns
};
constexpr PanelLayout panel_layout(Format f, int columns, int group = 0) {
  PanelLayout p;
  p.group = group;
  if (is_plain(f)) {
    p.bytes = (size_t)columns * panel_rows * (f == Format::F32 ? 4 : 2);
    return p;
  }
  const size_t blocks = columns / block_columns;
  size_t at = is_float(f) ? (size_t)columns * quant_bytes(f) / block_columns : blocks * quant_bytes(f);
  p.high = at, at += blocks * high_bytes(f);
  p.scales = at;
  if (group > 0) {
    const size_t groups = (columns + group - 1) / group;
    at += groups * panel_rows * (f == Format::Int4 ? 2 : 4);
    p.mins = at, at += f == Format::Int4 ? groups * panel_rows : 0;
  } else {
    at += blocks * scale_bytes(f);
    p.mins = at, at += blocks * min_bytes(f);
  }
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
  // Throws std::invalid_argument when sizes do not fit each other, or a number is infinite or none.
  Matrix(Format format, const uint8_t* data, size_t num_bytes, int rows, int columns, ThreadPool& pool);
  // For `fill`; `group` columns share a scale, 0 where the format says how many.
  Matrix(Format format, int rows, int columns, int group);

  // Calls pack(panel, lane, row) for every row; it says whether all numbers of the row are finite. Throws
  // std::invalid_argument that names the first row where they are not.
  template <class Pack> void fill(ThreadPool& pool, const Pack& pack) {
    std::atomic<int> broken{rows_};
    pool.for_each(num_panels_, [&](int p) {
      uint8_t* panel = data_.get() + p * layout_.bytes;
      std::memset(panel, 0, layout_.bytes);
      for (int r = 0, row = p * panel_rows; r < panel_rows && row < rows_; ++r, ++row)
        if (!pack(panel, r, row))
          for (int first = broken; row < first && !broken.compare_exchange_weak(first, row);) {}
    });
    if (broken < rows_) fail_not_finite(broken);
  }

  Format format() const { return format_; }
  int rows() const { return rows_; }
  int columns() const { return columns_; }
  int num_panels() const { return num_panels_; }
  size_t num_bytes() const { return num_panels_ * layout_.bytes; }
  const PanelLayout& layout() const { return layout_; }
  const uint8_t* panel(int index) const { return data_.get() + index * layout_.bytes; }

  // Writes one row's `columns()` weights to `out`.
  void unpack_row(int row, float* out) const;
  // The numbers that Table4's nibbles stand for.
  float table[16] = {};

 private:
  [[noreturn]] static void fail_not_finite(int row);

  struct Free {
    void operator()(uint8_t* p) const;
  };
  Format format_;
  int rows_, columns_, num_panels_;
  PanelLayout layout_;
  std::unique_ptr<uint8_t[], Free> data_;
};

}  // namespace kaiwa
