#include "pack.h"

#include <cstring>

namespace kaiwa {
namespace {

// Block structures: ggml's, in ggml/src/ggml-common.h.

bool pack_half(uint8_t* part, int r, const uint8_t* from) {
  const uint16_t h = read_half(from);
  write_half(part, r, h);
  return is_finite_half(h);
}

// Sixteen bytes of which the low nibbles are columns 0..15 and the high ones 16..31, as ggml stores blocks of 32.
void pack_nibbles(uint8_t* quants, int r, const uint8_t* nibbles) {
  for (int v = 0; v < 4; ++v) memcpy(lane_bytes(quants, v, r), nibbles + 4 * v, 4);
}

// One bit for each of 32 columns.
void pack_bits(uint8_t* high, int r, uint32_t bits) {
  for (int v = 0; v < 8; ++v) high[8 * v + r / 2] |= (uint8_t)((bits >> 4 * v & 15) << 4 * (r % 2));
}

// Two bits of column c: vector v's lie in plane v / 4 at position 2 * (v % 4).
void pack_pair(uint8_t* planes, int r, int c, int pair) {
  planes[64 * (c / 16) + 4 * r + c % 4] |= (uint8_t)(pair << 2 * (c / 4 % 4));
}

bool pack_q8(const PanelLayout& at, uint8_t* panel, int b, int r, const uint8_t* block, int quants_at) {
  for (int v = 0; v < 8; ++v) {
    uint32_t word;
    memcpy(&word, block + quants_at + 4 * v, 4);
    word ^= 0x80808080;
    memcpy(lane_bytes(panel + 512 * b, v, r), &word, 4);
  }
  return pack_half(panel + at.scales + 32 * b, r, block);
}

// Q4_0, Q4_1 and IQ4_NL.
bool pack_q4(const PanelLayout& at, uint8_t* panel, int b, int r, const uint8_t* block, bool with_min) {
  pack_nibbles(panel + 256 * b, r, block + (with_min ? 4 : 2));
  return pack_half(panel + at.scales + 32 * b, r, block) &&
         (!with_min || pack_half(panel + at.mins + 32 * b, r, block + 2));
}

bool pack_q5(const PanelLayout& at, uint8_t* panel, int b, int r, const uint8_t* block, bool with_min) {
  const uint8_t* bits = block + (with_min ? 4 : 2);
  uint32_t high;
  memcpy(&high, bits, 4);
  pack_nibbles(panel + 256 * b, r, bits + 4);
  pack_bits(panel + at.high + 64 * b, r, high);
  return pack_half(panel + at.scales + 32 * b, r, block) &&
         (!with_min || pack_half(panel + at.mins + 32 * b, r, block + 2));
}

// An exponent (255 is not a number) and sixteen bytes of nibbles.
bool pack_mxfp4(const PanelLayout& at, uint8_t* panel, int b, int r, const uint8_t* block) {
  panel[at.scales + 16 * b + r] = block[0];
  pack_nibbles(panel + 256 * b, r, block + 1);
  return block[0] != 255;
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

bool pack_k45(Format f, const PanelLayout& at, uint8_t* panel, int super, int r, const uint8_t* block) {
  const uint8_t* scales = block + 4;
  const uint8_t* high = block + 16;
  const uint8_t* quants = block + (f == Format::Q5_K ? 48 : 16);
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
  return pack_half(panel + at.d + 32 * super, r, block) && pack_half(panel + at.dmin + 32 * super, r, block + 2);
}

// The 6-bit number of column c (0..255) of a Q6_K block.
int read_q6(const uint8_t* block, int c) {
  const int half = c / 128, in_half = c % 128, quarter = in_half / 32, i = in_half % 32;
  const uint8_t low = block[64 * half + 32 * (quarter % 2) + i];
  const uint8_t high = block[128 + 32 * half + i];
  return (low >> (quarter < 2 ? 0 : 4) & 15) | (high >> 2 * quarter & 3) << 4;
}

bool pack_q6k(const PanelLayout& at, uint8_t* panel, int super, int r, const uint8_t* block) {
  for (int j = 0; j < 8; ++j) {
    const int b = 8 * super + j;
    uint8_t nibbles[16] = {};
    for (int c = 0; c < 32; ++c) {
      const int q = read_q6(block, 32 * j + c);
      nibbles[c % 16] |= (uint8_t)((q & 15) << (c < 16 ? 0 : 4));
      pack_pair(panel + at.high + 128 * b, r, c, q >> 4);
    }
    pack_nibbles(panel + 256 * b, r, nibbles);
    for (int g = 0; g < 2; ++g) panel[at.scales + 32 * b + 16 * g + r] = block[192 + 2 * j + g];
  }
  return pack_half(panel + at.d + 32 * super, r, block + 208);
}

// The lower two bits of block j's column c in Q2_K and Q3_K: pairs of half a super-block's four blocks share a byte.
int read_pair(const uint8_t* quants, int j, int c) { return quants[32 * (j / 4) + c] >> 2 * (j % 4) & 3; }

bool pack_q2k(const PanelLayout& at, uint8_t* panel, int super, int r, const uint8_t* block) {
  for (int j = 0; j < 8; ++j) {
    const int b = 8 * super + j;
    for (int c = 0; c < 32; ++c) pack_pair(panel + 128 * b, r, c, read_pair(block + 16, j, c));
    for (int g = 0; g < 2; ++g) panel[at.scales + 32 * b + 16 * g + r] = block[2 * j + g];
  }
  return pack_half(panel + at.d + 32 * super, r, block + 80) && pack_half(panel + at.dmin + 32 * super, r, block + 82);
}

bool pack_q3k(const PanelLayout& at, uint8_t* panel, int super, int r, const uint8_t* block) {
  const uint8_t *high = block, *quants = block + 32, *scales = block + 96;
  for (int j = 0; j < 8; ++j) {
    const int b = 8 * super + j;
    uint32_t bits = 0;
    for (int c = 0; c < 32; ++c) {
      pack_pair(panel + 128 * b, r, c, read_pair(quants, j, c));
      bits |= (uint32_t)(high[c] >> j & 1) << c;
    }
    pack_bits(panel + at.high + 64 * b, r, bits);
    for (int g = 0; g < 2; ++g) {
      // Sixteen scales of 6 bits: the lower four in nibbles of bytes 0..7, the upper two in pairs of bytes 8..11.
      const int i = 2 * j + g, low = scales[i % 8] >> 4 * (i / 8) & 15, top = scales[8 + i % 4] >> 2 * (i / 4) & 3;
      panel[at.scales + 32 * b + 16 * g + r] = (uint8_t)((low | top << 4) - 32);
    }
  }
  return pack_half(panel + at.d + 32 * super, r, block + 108);
}

bool pack_iq4_xs(const PanelLayout& at, uint8_t* panel, int super, int r, const uint8_t* block) {
  const int tops = read_half(block + 2);
  for (int j = 0; j < 8; ++j) {
    const int b = 8 * super + j, low = block[4 + j / 2] >> 4 * (j % 2) & 15;
    panel[at.scales + 16 * b + r] = (uint8_t)((low | (tops >> 2 * j & 3) << 4) - 32);
    pack_nibbles(panel + 256 * b, r, block + 8 + 16 * j);
  }
  return pack_half(panel + at.d + 32 * super, r, block);
}

// The bits of `exponent` are all set in what is infinite or not a number.
template <class T> bool pack_floats(uint8_t* panel, int r, const uint8_t* row, int columns, T exponent) {
  bool is_broken = false;
  for (int c = 0; c < columns; ++c) {
    T x;
    memcpy(&x, row + c * sizeof(T), sizeof(T));
    is_broken |= (x & exponent) == exponent;
    memcpy(panel + ((size_t)c * panel_rows + r) * sizeof(T), &x, sizeof(T));
  }
  return !is_broken;
}

bool pack_block(Format f, const PanelLayout& at, uint8_t* panel, int b, int r, const uint8_t* block) {
  switch (f) {
    case Format::Q8_0: return pack_q8(at, panel, b, r, block, 2);
    case Format::Q8_1: return pack_q8(at, panel, b, r, block, 4);  // a sum of the quants stands between
    case Format::Q4_0:
    case Format::IQ4_NL: return pack_q4(at, panel, b, r, block, false);
    case Format::Q4_1: return pack_q4(at, panel, b, r, block, true);
    case Format::Q5_0: return pack_q5(at, panel, b, r, block, false);
    case Format::Q5_1: return pack_q5(at, panel, b, r, block, true);
    case Format::MXFP4: return pack_mxfp4(at, panel, b, r, block);
    case Format::Q2_K: return pack_q2k(at, panel, b, r, block);
    case Format::Q3_K: return pack_q3k(at, panel, b, r, block);
    case Format::Q4_K:
    case Format::Q5_K: return pack_k45(f, at, panel, b, r, block);
    case Format::Q6_K: return pack_q6k(at, panel, b, r, block);
    case Format::IQ4_XS: return pack_iq4_xs(at, panel, b, r, block);
    default: return false;
  }
}

}  // namespace

bool pack_row(Format f, const PanelLayout& at, uint8_t* panel, int r, const uint8_t* row, int columns) {
  if (f == Format::F32) return pack_floats<uint32_t>(panel, r, row, columns, 0x7F800000);
  if (f == Format::F16) return pack_floats<uint16_t>(panel, r, row, columns, 0x7C00);
  if (f == Format::BF16) return pack_floats<uint16_t>(panel, r, row, columns, 0x7F80);
  const FormatInfo& file = info(f);
  bool is_whole = true;
  for (int b = 0; b < columns / file.columns; ++b)
    is_whole &= pack_block(f, at, panel, b, r, row + (size_t)b * file.bytes);
  return is_whole;
}

}  // namespace kaiwa
