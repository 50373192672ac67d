// Sixteen-bit floating point, one number at a time.
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
