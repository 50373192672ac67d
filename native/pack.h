// Writes rows of a file's tensor into panels: `matrix.h` says how they lie there.
#pragma once

#include "half.h"
#include "matrix.h"

namespace kaiwa {

// Packs one row, as a GGUF or safetensors file holds it, into a lane of a panel. False if one of its numbers is
// infinite or none, so that it would spoil every sum it is in.
bool pack_row(Format file_format, const PanelLayout& at, uint8_t* panel, int lane, const uint8_t* row, int columns);

// What packing is made of.

inline bool is_finite(float x) { return (bits_from_f32(x) & 0x7F800000) != 0x7F800000; }
inline bool is_finite_half(uint16_t h) { return (h & 0x7C00) != 0x7C00; }

inline uint16_t read_half(const uint8_t* p) {
  uint16_t h;
  memcpy(&h, p, 2);
  return h;
}

inline float read_float(const uint8_t* part, int index) {
  float x;
  memcpy(&x, part + 4 * index, 4);
  return x;
}

inline void write_half(uint8_t* part, int lane, uint16_t h) { memcpy(part + 2 * lane, &h, 2); }
inline void write_float(uint8_t* part, int lane, float x) { memcpy(part + 4 * lane, &x, 4); }

// Where a lane's bytes of the 64-byte vector v lie.
inline uint8_t* lane_bytes(uint8_t* quants, int v, int lane) { return quants + 64 * v + 4 * lane; }

// The numbers of 32 columns, each below 16, as nibbles: columns 0..15 are the low ones.
inline void pack_numbers(uint8_t* quants, int lane, const uint8_t* numbers) {
  for (int i = 0; i < 16; ++i)
    lane_bytes(quants, i / 4, lane)[i % 4] = (uint8_t)(numbers[i] | numbers[i + 16] << 4);
}

}  // namespace kaiwa
