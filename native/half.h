// Sixteen- and eight-bit floating point, one number at a time.
#pragma once

#include <cstdint>
#include <cstring>

namespace kaiwa {

inline float f32_from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

inline uint32_t bits_from_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}

inline float f32_from_bf16(uint16_t h) { return f32_from_bits((uint32_t)h << 16); }

inline float f32_from_f16(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7FFF;
  if (rest >= 0x7C00) return f32_from_bits(sign | 0x7F800000 | (rest & 0x3FF) << 13);
  // Half's exponent lies 112 below single's; the product is exact, subnormals included.
  return f32_from_bits(sign | bits_from_f32(f32_from_bits(rest << 13) * 0x1p112f));
}

// 2^(exponent - 128): half of what the exponent means in the OCP Microscaling formats, whose e2m1 numbers are doubled.
inline float f32_from_e8m0(uint8_t exponent) {
  return f32_from_bits(exponent < 2 ? 0x00200000u << exponent : (uint32_t)(exponent - 1) << 23);
}

// Half's exponent lies 8 below that of e4m3, whose 0x7F and 0xFF are not numbers (Micikevicius et al. 2022).
inline float f32_from_e4m3(uint8_t b) { return f32_from_f16((uint16_t)((b & 0x80) << 8 | (b & 0x7F) << 7)) * 256.0f; }

// Rounds to nearest, ties to even.
inline uint16_t f16_from_f32(float x) {
  const uint32_t bits = bits_from_f32(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7FFFFFFF;
  if (rest > 0x7F800000) return (uint16_t)(sign | 0x7E00);
  if (rest >= 0x477FF000) return (uint16_t)(sign | 0x7C00);
  if (rest < 0x38800000) {  // subnormal in half: let the adder round
    const float shifted = f32_from_bits(rest) + 0.5f;
    return (uint16_t)(sign | (bits_from_f32(shifted) - 0x3F000000));
  }
  return (uint16_t)(sign | ((rest - 0x38000000 + 0xFFF + (rest >> 13 & 1)) >> 13));
}

}  // namespace kaiwa
