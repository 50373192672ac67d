// Sixteen lanes of arithmetic, written once for each instruction set.
//
// A kernel file defines KAIWA_AVX512, KAIWA_AVX2 or KAIWA_NEON (or none) and includes this header inside its own namespace, so
// that the same kernel source becomes one tier after another. F32 and I32 are 16 lanes; U8 is 64 bytes, of which lane
// i of a dot product owns bytes 4i..4i+3.

#if defined(KAIWA_AVX512)

using F32 = __m512;
using I32 = __m512i;
using U8 = __m512i;

inline F32 load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, F32 x) { _mm512_storeu_ps(p, x); }
inline F32 splat(float x) { return _mm512_set1_ps(x); }
inline F32 add(F32 a, F32 b) { return _mm512_add_ps(a, b); }
inline F32 sub(F32 a, F32 b) { return _mm512_sub_ps(a, b); }
inline F32 mul(F32 a, F32 b) { return _mm512_mul_ps(a, b); }
inline F32 div(F32 a, F32 b) { return _mm512_div_ps(a, b); }
inline F32 fma(F32 a, F32 b, F32 c) { return _mm512_fmadd_ps(a, b, c); }
inline F32 maximum(F32 a, F32 b) { return _mm512_max_ps(a, b); }
inline F32 minimum(F32 a, F32 b) { return _mm512_min_ps(a, b); }
inline F32 absolute(F32 a) { return _mm512_abs_ps(a); }
inline float sum(F32 a) { return _mm512_reduce_add_ps(a); }
inline float largest(F32 a) { return _mm512_reduce_max_ps(a); }
inline float smallest(F32 a) { return _mm512_reduce_min_ps(a); }
inline F32 round(F32 a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline F32 scale_by_power_of_2(F32 a, F32 n) { return _mm512_scalef_ps(a, n); }

inline F32 load_f16(const uint16_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p)); }
inline F32 load_bf16(const uint16_t* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16));
}
inline void store_f16(uint16_t* p, F32 x) {
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline F32 load_u8(const uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p)));
}
inline F32 load_i8(const int8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p)));
}
// The low (shift 0) or high (shift 4) nibbles of sixteen bytes.
template <int shift> inline F32 load_nibbles(const uint8_t* p) {
  const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p));
  return _mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(bytes, shift), _mm512_set1_epi32(15)));
}
// 2^(p[i] - 128)
inline F32 load_e8m0(const uint8_t* p) {
  return _mm512_scalef_ps(_mm512_set1_ps(1.0f), _mm512_sub_ps(load_u8(p), _mm512_set1_ps(128.0f)));
}
// e4m3 numbers, times 2^-8: the bits of half-precision numbers, save that the exponent's middle lies 8 higher.
inline F32 load_e4m3(const uint8_t* p) {
  const __m256i high = _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i*)p)), 8);
  return _mm512_cvtph_ps(_mm256_and_si256(_mm256_srai_epi16(high, 1), _mm256_set1_epi16((short)0xBFFF)));
}
// What the low and the high nibbles of sixteen bytes stand for in a table of sixteen numbers.
struct Table { __m512 numbers; };
inline Table load_table(const float* p) { return {load(p)}; }
inline void look_up_pair(const Table& table, const uint8_t* p, F32& low, F32& high) {
  const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p));
  low = _mm512_permutexvar_ps(bytes, table.numbers);  // sees the lowest four bits only
  high = _mm512_permutexvar_ps(_mm512_srli_epi32(bytes, 4), table.numbers);
}

inline I32 zero() { return _mm512_setzero_si512(); }
inline I32 add(I32 a, I32 b) { return _mm512_add_epi32(a, b); }
inline F32 to_f32(I32 a) { return _mm512_cvtepi32_ps(a); }
inline I32 to_i32(F32 a) { return _mm512_cvtps_epi32(a); }
inline int32_t sum(I32 a) { return _mm512_reduce_add_epi32(a); }
inline void store_i8(int8_t* p, I32 a) { _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8(a)); }

inline U8 load_bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
inline void store_bytes(uint8_t* p, U8 x) { _mm512_storeu_si512(p, x); }
inline U8 low_nibbles(U8 a) { return _mm512_and_si512(a, _mm512_set1_epi8(15)); }
inline U8 high_nibbles(U8 a) { return _mm512_and_si512(_mm512_srli_epi16(a, 4), _mm512_set1_epi8(15)); }
// What each byte, below 16, stands for in a table of sixteen bytes.
inline U8 look_up(U8 a, const uint8_t* table) {
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)table)), a);
}
// The two bits at position 2 * pair of each byte.
template <int pair> inline U8 pairs(U8 a) {
  return _mm512_and_si512(_mm512_srli_epi16(a, 2 * pair), _mm512_set1_epi8(3));
}
// Adds `value` to the bytes whose bit is set.
inline U8 add_where(U8 a, const uint8_t* bits, int value) {
  uint64_t mask;
  memcpy(&mask, bits, 8);
  return _mm512_mask_add_epi8(a, mask, a, _mm512_set1_epi8((char)value));
}
// Adds 16 times the two bits at position 2 * pair of each byte of `plane`.
template <int pair> inline U8 add_pair(U8 a, U8 plane) {
  U8 moved = pair < 2 ? _mm512_slli_epi16(plane, 4 - 2 * (pair < 2 ? pair : 0))
                      : _mm512_srli_epi16(plane, pair < 2 ? 0 : 2 * pair - 4);
  return _mm512_or_si512(a, _mm512_and_si512(moved, _mm512_set1_epi8(0x30)));
}
// acc[i] += sum over c of w[4i + c] * a[c]; a is four signed bytes.
inline I32 dot4(I32 acc, U8 w, const int8_t* a) {
  int32_t four;
  memcpy(&four, a, 4);
  return _mm512_dpbusd_epi32(acc, w, _mm512_set1_epi32(four));
}

#elif defined(KAIWA_AVX2)

struct F32 { __m256 a, b; };
struct I32 { __m256i a, b; };
struct U8 { __m256i a, b; };

inline F32 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, F32 x) { _mm256_storeu_ps(p, x.a); _mm256_storeu_ps(p + 8, x.b); }
inline F32 splat(float x) { __m256 v = _mm256_set1_ps(x); return {v, v}; }
inline F32 add(F32 x, F32 y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline F32 sub(F32 x, F32 y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline F32 mul(F32 x, F32 y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline F32 div(F32 x, F32 y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline F32 fma(F32 x, F32 y, F32 z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
inline F32 maximum(F32 x, F32 y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
inline F32 minimum(F32 x, F32 y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
inline F32 absolute(F32 x) {
  __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
inline float sum(F32 x) {
  __m256 v = _mm256_add_ps(x.a, x.b);
  __m128 h = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  h = _mm_add_ps(h, _mm_movehl_ps(h, h));
  return _mm_cvtss_f32(_mm_add_ss(h, _mm_movehdup_ps(h)));
}
inline float largest(F32 x) {
  __m256 v = _mm256_max_ps(x.a, x.b);
  __m128 h = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  h = _mm_max_ps(h, _mm_movehl_ps(h, h));
  return _mm_cvtss_f32(_mm_max_ss(h, _mm_movehdup_ps(h)));
}
inline float smallest(F32 x) {
  __m256 sign = _mm256_set1_ps(-0.0f);
  return -largest({_mm256_xor_ps(sign, x.a), _mm256_xor_ps(sign, x.b)});
}
inline F32 round(F32 x) {
  constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(x.a, mode), _mm256_round_ps(x.b, mode)};
}
inline __m256 scale_half(__m256 x, __m256 n) {
  __m256i exponent = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  return _mm256_mul_ps(x, _mm256_castsi256_ps(exponent));
}
inline F32 scale_by_power_of_2(F32 x, F32 n) { return {scale_half(x.a, n.a), scale_half(x.b, n.b)}; }

inline F32 load_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)), _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(p + 8)))};
}
inline __m256 widen_bf16(const uint16_t* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16));
}
inline F32 load_bf16(const uint16_t* p) { return {widen_bf16(p), widen_bf16(p + 8)}; }
inline void store_f16(uint16_t* p, F32 x) {
  constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph(x.a, mode));
  _mm_storeu_si128((__m128i*)(p + 8), _mm256_cvtps_ph(x.b, mode));
}
inline F32 load_u8(const uint8_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p))),
          _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)(p + 8))))};
}
inline F32 load_i8(const int8_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p))),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)(p + 8))))};
}
template <int shift> inline F32 load_nibbles(const uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128((const __m128i*)p);
  const __m128i nibbles = _mm_and_si128(_mm_srli_epi16(bytes, shift), _mm_set1_epi8(15));
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(nibbles)),
          _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(nibbles, 8)))};
}
inline __m256 half_of_e8m0(const uint8_t* p) {
  const __m256i x = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p));
  const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(x, _mm256_set1_epi32(1)), 23);
  const __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), x);
  return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, tiny, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), x)));
}
inline F32 load_e8m0(const uint8_t* p) { return {half_of_e8m0(p), half_of_e8m0(p + 8)}; }
inline F32 load_e4m3(const uint8_t* p) {
  const __m256i high = _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i*)p)), 8);
  const __m256i halves = _mm256_and_si256(_mm256_srai_epi16(high, 1), _mm256_set1_epi16((short)0xBFFF));
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(halves)), _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
}
struct Table { __m256 low, high; };
inline Table load_table(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
// Indices in the lowest four bits: the lower three choose in each half, the fourth between them.
inline __m256 look_up_eight(const Table& table, __m256i x) {
  const __m256 below = _mm256_permutevar8x32_ps(table.low, x), above = _mm256_permutevar8x32_ps(table.high, x);
  return _mm256_blendv_ps(below, above, _mm256_castsi256_ps(_mm256_slli_epi32(x, 28)));
}
inline void look_up_pair(const Table& table, const uint8_t* p, F32& low, F32& high) {
  const __m256i a = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p));
  const __m256i b = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)(p + 8)));
  low = {look_up_eight(table, a), look_up_eight(table, b)};
  high = {look_up_eight(table, _mm256_srli_epi32(a, 4)), look_up_eight(table, _mm256_srli_epi32(b, 4))};
}

inline I32 zero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
inline I32 add(I32 x, I32 y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
template <int bits> inline I32 shift_left(I32 x) { return {_mm256_slli_epi32(x.a, bits), _mm256_slli_epi32(x.b, bits)}; }
inline F32 to_f32(I32 x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
inline I32 to_i32(F32 x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
inline int32_t sum(I32 x) {
  __m256i v = _mm256_add_epi32(x.a, x.b);
  __m128i h = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  h = _mm_add_epi32(h, _mm_shuffle_epi32(h, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(h, _mm_shuffle_epi32(h, 0xB1)));
}
inline void store_i8(int8_t* p, I32 x) {
  __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xD8);
  _mm_storeu_si128((__m128i*)p, _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}

inline U8 load_bytes(const uint8_t* p) {
  return {_mm256_loadu_si256((const __m256i*)p), _mm256_loadu_si256((const __m256i*)(p + 32))};
}
inline void store_bytes(uint8_t* p, U8 x) {
  _mm256_storeu_si256((__m256i*)p, x.a);
  _mm256_storeu_si256((__m256i*)(p + 32), x.b);
}
inline U8 low_nibbles(U8 x) {
  __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(x.a, mask), _mm256_and_si256(x.b, mask)};
}
inline U8 high_nibbles(U8 x) { return low_nibbles({_mm256_srli_epi16(x.a, 4), _mm256_srli_epi16(x.b, 4)}); }
inline U8 look_up(U8 x, const uint8_t* table) {
  const __m256i numbers = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)table));
  return {_mm256_shuffle_epi8(numbers, x.a), _mm256_shuffle_epi8(numbers, x.b)};
}
template <int pair> inline U8 pairs(U8 x) {
  const __m256i mask = _mm256_set1_epi8(3);
  return {_mm256_and_si256(_mm256_srli_epi16(x.a, 2 * pair), mask), _mm256_and_si256(_mm256_srli_epi16(x.b, 2 * pair), mask)};
}
inline __m256i spread_bits(const uint8_t* bits, int value) {
  int32_t four;
  memcpy(&four, bits, 4);
  const __m256i source = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i select = _mm256_set1_epi64x((int64_t)0x8040201008040201);
  __m256i bytes = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(four), source), select);
  return _mm256_and_si256(_mm256_cmpeq_epi8(bytes, select), _mm256_set1_epi8((char)value));
}
inline U8 add_where(U8 x, const uint8_t* bits, int value) {
  return {_mm256_add_epi8(x.a, spread_bits(bits, value)), _mm256_add_epi8(x.b, spread_bits(bits + 4, value))};
}
template <int pair> inline __m256i add_pair_half(__m256i x, __m256i plane) {
  __m256i moved = pair < 2 ? _mm256_slli_epi16(plane, 4 - 2 * (pair < 2 ? pair : 0))
                           : _mm256_srli_epi16(plane, pair < 2 ? 0 : 2 * pair - 4);
  return _mm256_or_si256(x, _mm256_and_si256(moved, _mm256_set1_epi8(0x30)));
}
template <int pair> inline U8 add_pair(U8 x, U8 plane) {
  return {add_pair_half<pair>(x.a, plane.a), add_pair_half<pair>(x.b, plane.b)};
}
// 16-bit pair sums must not saturate: w is below 128 here, and dot4_wide serves larger w.
inline __m256i dot4_half(__m256i acc, __m256i w, __m256i a) {
  return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(w, a), _mm256_set1_epi16(1)));
}
inline I32 dot4(I32 acc, U8 w, const int8_t* a) {
  int32_t four;
  memcpy(&four, a, 4);
  __m256i v = _mm256_set1_epi32(four);
  return {dot4_half(acc.a, w.a, v), dot4_half(acc.b, w.b, v)};
}

#elif defined(KAIWA_NEON)

#include "simd_neon.h"

#else

struct F32 { float v[16]; };
struct I32 { int32_t v[16]; };
struct U8 { uint8_t v[64]; };

#define KAIWA_LANES for (int i = 0; i < 16; ++i)

inline F32 load(const float* p) { F32 r; memcpy(r.v, p, 64); return r; }
inline void store(float* p, const F32& x) { memcpy(p, x.v, 64); }
inline F32 splat(float x) { F32 r; KAIWA_LANES r.v[i] = x; return r; }
inline F32 add(const F32& x, const F32& y) { F32 r; KAIWA_LANES r.v[i] = x.v[i] + y.v[i]; return r; }
inline F32 sub(const F32& x, const F32& y) { F32 r; KAIWA_LANES r.v[i] = x.v[i] - y.v[i]; return r; }
inline F32 mul(const F32& x, const F32& y) { F32 r; KAIWA_LANES r.v[i] = x.v[i] * y.v[i]; return r; }
inline F32 div(const F32& x, const F32& y) { F32 r; KAIWA_LANES r.v[i] = x.v[i] / y.v[i]; return r; }
inline F32 fma(const F32& x, const F32& y, const F32& z) { F32 r; KAIWA_LANES r.v[i] = x.v[i] * y.v[i] + z.v[i]; return r; }
inline F32 maximum(const F32& x, const F32& y) { F32 r; KAIWA_LANES r.v[i] = x.v[i] > y.v[i] ? x.v[i] : y.v[i]; return r; }
inline F32 minimum(const F32& x, const F32& y) { F32 r; KAIWA_LANES r.v[i] = x.v[i] < y.v[i] ? x.v[i] : y.v[i]; return r; }
inline F32 absolute(const F32& x) { F32 r; KAIWA_LANES r.v[i] = __builtin_fabsf(x.v[i]); return r; }
inline float sum(const F32& x) { float s = 0; KAIWA_LANES s += x.v[i]; return s; }
inline float largest(const F32& x) { float m = x.v[0]; KAIWA_LANES m = x.v[i] > m ? x.v[i] : m; return m; }
inline float smallest(const F32& x) { float m = x.v[0]; KAIWA_LANES m = x.v[i] < m ? x.v[i] : m; return m; }
// Adding and taking away 1.5 * 2^23 rounds to the nearest whole number, ties to even.
inline F32 round(const F32& x) {
  F32 r;
  KAIWA_LANES { volatile float shifted = x.v[i] + 12582912.0f; r.v[i] = shifted - 12582912.0f; }
  return r;
}
inline F32 scale_by_power_of_2(const F32& x, const F32& n) {
  F32 r;
  KAIWA_LANES {
    const int32_t whole = n.v[i] == n.v[i] ? (int32_t)n.v[i] : 0;
    const int32_t exponent = (whole + 127) << 23;
    float power;
    memcpy(&power, &exponent, 4);
    r.v[i] = x.v[i] * power;
  }
  return r;
}
inline F32 load_f16(const uint16_t* p) { F32 r; KAIWA_LANES r.v[i] = f32_from_f16(p[i]); return r; }
inline F32 load_bf16(const uint16_t* p) { F32 r; KAIWA_LANES r.v[i] = f32_from_bf16(p[i]); return r; }
inline void store_f16(uint16_t* p, const F32& x) { KAIWA_LANES p[i] = f16_from_f32(x.v[i]); }
inline F32 load_u8(const uint8_t* p) { F32 r; KAIWA_LANES r.v[i] = p[i]; return r; }
inline F32 load_i8(const int8_t* p) { F32 r; KAIWA_LANES r.v[i] = p[i]; return r; }
template <int shift> inline F32 load_nibbles(const uint8_t* p) { F32 r; KAIWA_LANES r.v[i] = p[i] >> shift & 15; return r; }
inline F32 load_e8m0(const uint8_t* p) { F32 r; KAIWA_LANES r.v[i] = f32_from_e8m0(p[i]); return r; }
inline F32 load_e4m3(const uint8_t* p) { F32 r; KAIWA_LANES r.v[i] = f32_from_e4m3(p[i]) * 0x1p-8f; return r; }
using Table = F32;
inline Table load_table(const float* p) { return load(p); }
inline void look_up_pair(const Table& table, const uint8_t* p, F32& low, F32& high) {
  KAIWA_LANES { low.v[i] = table.v[p[i] & 15]; high.v[i] = table.v[p[i] >> 4]; }
}

inline I32 splat(int32_t x) { I32 r; KAIWA_LANES r.v[i] = x; return r; }
inline I32 zero() { return splat((int32_t)0); }
inline I32 add(const I32& x, const I32& y) { I32 r; KAIWA_LANES r.v[i] = x.v[i] + y.v[i]; return r; }
inline F32 to_f32(const I32& x) { F32 r; KAIWA_LANES r.v[i] = (float)x.v[i]; return r; }
inline I32 to_i32(const F32& x) { F32 n = round(x); I32 r; KAIWA_LANES r.v[i] = (int32_t)n.v[i]; return r; }
inline int32_t sum(const I32& x) { int32_t s = 0; KAIWA_LANES s += x.v[i]; return s; }
inline void store_i8(int8_t* p, const I32& x) { KAIWA_LANES p[i] = (int8_t)x.v[i]; }

inline U8 load_bytes(const uint8_t* p) { U8 r; memcpy(r.v, p, 64); return r; }
inline void store_bytes(uint8_t* p, const U8& x) { memcpy(p, x.v, 64); }
inline U8 low_nibbles(const U8& x) { U8 r; for (int i = 0; i < 64; ++i) r.v[i] = x.v[i] & 15; return r; }
inline U8 high_nibbles(const U8& x) { U8 r; for (int i = 0; i < 64; ++i) r.v[i] = x.v[i] >> 4; return r; }
inline U8 look_up(const U8& x, const uint8_t* table) { U8 r; for (int i = 0; i < 64; ++i) r.v[i] = table[x.v[i]]; return r; }
template <int pair> inline U8 pairs(const U8& x) { U8 r; for (int i = 0; i < 64; ++i) r.v[i] = x.v[i] >> 2 * pair & 3; return r; }
inline U8 add_where(const U8& x, const uint8_t* bits, int value) {
  U8 r;
  for (int i = 0; i < 64; ++i) r.v[i] = (uint8_t)(x.v[i] + ((bits[i / 8] >> (i % 8)) & 1) * value);
  return r;
}
template <int pair> inline U8 add_pair(const U8& x, const U8& plane) {
  U8 r;
  for (int i = 0; i < 64; ++i) r.v[i] = (uint8_t)(x.v[i] | (((plane.v[i] >> (2 * pair)) & 3) << 4));
  return r;
}
inline I32 dot4(const I32& acc, const U8& w, const int8_t* a) {
  I32 r;
  KAIWA_LANES r.v[i] = acc.v[i] + w.v[4 * i] * a[0] + w.v[4 * i + 1] * a[1] + w.v[4 * i + 2] * a[2] + w.v[4 * i + 3] * a[3];
  return r;
}

#undef KAIWA_LANES
#endif

// Four products of unsigned 8-bit weights: the AVX2 tier's 16-bit sums cannot hold a pair of them, and the instruction of
// the NEON tier takes them for signed.
inline I32 dot4_wide(I32 acc, U8 w, const int8_t* a) {
#if defined(KAIWA_AVX2)
  int32_t four;
  memcpy(&four, a, 4);
  const __m256i v = _mm256_set1_epi32(four), low = _mm256_set1_epi8(127);
  // w = (w & 127) + 128 * (w >> 7): the second part is a product with 0 or 1, counted 128 times.
  const __m256i one = _mm256_set1_epi8(1);
  I32 tops = {dot4_half(_mm256_setzero_si256(), _mm256_and_si256(_mm256_srli_epi16(w.a, 7), one), v),
              dot4_half(_mm256_setzero_si256(), _mm256_and_si256(_mm256_srli_epi16(w.b, 7), one), v)};
  acc = add(acc, shift_left<7>(tops));
  return {dot4_half(acc.a, _mm256_and_si256(w.a, low), v), dot4_half(acc.b, _mm256_and_si256(w.b, low), v)};
#elif defined(KAIWA_NEON)
  // w = (w - 128) + 128, and 128 times the sum of `a` is the same for all lanes.
  const int8x16_t four = splat_four(a);
  const int32x4_t rest = vshlq_n_s32(vdotq_s32(vdupq_n_s32(0), vdupq_n_s8(1), four), 7);
  for (int i = 0; i < 4; ++i) {
    const int8x16_t less = vreinterpretq_s8_u8(veorq_u8(w.v[i], vdupq_n_u8(128)));
    acc.v[i] = vdotq_s32(vaddq_s32(acc.v[i], rest), less, four);
  }
  return acc;
#else
  return dot4(acc, w, a);
#endif
}

// e^x to within 2 units in the last place, for x up to 88; below -87 it is 0 or next to it. NaN stays NaN: of a maximum or
// minimum with it, the second operand is what comes out.
inline F32 exponential(F32 x) {
  x = minimum(splat(88.0f), maximum(splat(-87.0f), x));
  F32 n = round(mul(x, splat(1.44269504f)));
  F32 r = fma(n, splat(-0.693359375f), x);
  r = fma(n, splat(2.12194440e-4f), r);
  F32 p = splat(1.9875691500e-4f);
  p = fma(p, r, splat(1.3981999507e-3f));
  p = fma(p, r, splat(8.3334519073e-3f));
  p = fma(p, r, splat(4.1665795894e-2f));
  p = fma(p, r, splat(1.6666665459e-1f));
  p = fma(p, r, splat(5.0000001201e-1f));
  p = add(fma(mul(p, r), r, r), splat(1.0f));
  return scale_by_power_of_2(p, n);
}

// cap * tanh(x / cap) = cap - 2 cap / (1 + e^(2 x / cap))
inline F32 softcap(F32 x, float cap) {
  return sub(splat(cap), div(splat(2 * cap), add(splat(1.0f), exponential(mul(x, splat(2 / cap))))));
}
