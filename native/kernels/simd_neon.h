// Sixteen lanes on Arm, as four registers of four. Part of simd.h.

struct F32 { float32x4_t v[4]; };
struct I32 { int32x4_t v[4]; };
struct U8 { uint8x16_t v[4]; };

#define KAIWA_QUARTERS for (int i = 0; i < 4; ++i)

inline F32 load(const float* p) { F32 r; KAIWA_QUARTERS r.v[i] = vld1q_f32(p + 4 * i); return r; }
inline void store(float* p, F32 x) { KAIWA_QUARTERS vst1q_f32(p + 4 * i, x.v[i]); }
inline F32 splat(float x) { F32 r; KAIWA_QUARTERS r.v[i] = vdupq_n_f32(x); return r; }
inline F32 add(F32 x, F32 y) { KAIWA_QUARTERS x.v[i] = vaddq_f32(x.v[i], y.v[i]); return x; }
inline F32 sub(F32 x, F32 y) { KAIWA_QUARTERS x.v[i] = vsubq_f32(x.v[i], y.v[i]); return x; }
inline F32 mul(F32 x, F32 y) { KAIWA_QUARTERS x.v[i] = vmulq_f32(x.v[i], y.v[i]); return x; }
inline F32 div(F32 x, F32 y) { KAIWA_QUARTERS x.v[i] = vdivq_f32(x.v[i], y.v[i]); return x; }
inline F32 fma(F32 x, F32 y, F32 z) { KAIWA_QUARTERS z.v[i] = vfmaq_f32(z.v[i], x.v[i], y.v[i]); return z; }
// Arm's own maximum and minimum hand NaN on; here the second operand wins over it, as on x86.
inline F32 maximum(F32 x, F32 y) { KAIWA_QUARTERS x.v[i] = vbslq_f32(vcgtq_f32(x.v[i], y.v[i]), x.v[i], y.v[i]); return x; }
inline F32 minimum(F32 x, F32 y) { KAIWA_QUARTERS x.v[i] = vbslq_f32(vcltq_f32(x.v[i], y.v[i]), x.v[i], y.v[i]); return x; }
inline F32 absolute(F32 x) { KAIWA_QUARTERS x.v[i] = vabsq_f32(x.v[i]); return x; }
inline float sum(F32 x) { return vaddvq_f32(vaddq_f32(vaddq_f32(x.v[0], x.v[1]), vaddq_f32(x.v[2], x.v[3]))); }
inline float largest(F32 x) { return vmaxnmvq_f32(vmaxnmq_f32(vmaxnmq_f32(x.v[0], x.v[1]), vmaxnmq_f32(x.v[2], x.v[3]))); }
inline float smallest(F32 x) { return vminnmvq_f32(vminnmq_f32(vminnmq_f32(x.v[0], x.v[1]), vminnmq_f32(x.v[2], x.v[3]))); }
inline F32 round(F32 x) { KAIWA_QUARTERS x.v[i] = vrndnq_f32(x.v[i]); return x; }
inline F32 scale_by_power_of_2(F32 x, F32 n) {
  KAIWA_QUARTERS {
    const int32x4_t exponent = vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n.v[i]), vdupq_n_s32(127)), 23);
    x.v[i] = vmulq_f32(x.v[i], vreinterpretq_f32_s32(exponent));
  }
  return x;
}

inline F32 load_f16(const uint16_t* p) {
  F32 r;
  KAIWA_QUARTERS r.v[i] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i)));
  return r;
}
inline F32 load_bf16(const uint16_t* p) {
  F32 r;
  KAIWA_QUARTERS r.v[i] = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * i), 16));
  return r;
}
inline void store_f16(uint16_t* p, F32 x) {
  KAIWA_QUARTERS vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(x.v[i])));
}
inline uint32x4x4_t widen_bytes(uint8x16_t bytes) {
  const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_high_u8(bytes);
  return {{vmovl_u16(vget_low_u16(low)), vmovl_high_u16(low), vmovl_u16(vget_low_u16(high)), vmovl_high_u16(high)}};
}
inline F32 f32_from_bytes(uint8x16_t bytes) {
  const uint32x4x4_t wide = widen_bytes(bytes);
  F32 r;
  KAIWA_QUARTERS r.v[i] = vcvtq_f32_u32(wide.val[i]);
  return r;
}
inline F32 load_u8(const uint8_t* p) { return f32_from_bytes(vld1q_u8(p)); }
inline F32 load_i8(const int8_t* p) {
  const int8x16_t bytes = vld1q_s8(p);
  const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
  return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
           vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))}};
}
template <int shift> inline F32 load_nibbles(const uint8_t* p) {
  const uint8x16_t bytes = vld1q_u8(p);
  if constexpr (shift == 4) return f32_from_bytes(vshrq_n_u8(bytes, 4));
  return f32_from_bytes(vandq_u8(bytes, vdupq_n_u8(15)));
}
inline F32 load_e8m0(const uint8_t* p) {
  const uint32x4x4_t exponents = widen_bytes(vld1q_u8(p));
  F32 r;
  KAIWA_QUARTERS {
    const uint32x4_t x = exponents.val[i], normal = vshlq_n_u32(vsubq_u32(x, vdupq_n_u32(1)), 23);
    const uint32x4_t tiny = vshlq_u32(vdupq_n_u32(0x00200000), vreinterpretq_s32_u32(x));
    r.v[i] = vreinterpretq_f32_u32(vbslq_u32(vcltq_u32(x, vdupq_n_u32(2)), tiny, normal));
  }
  return r;
}
inline F32 load_e4m3(const uint8_t* p) {
  F32 r;
  for (int half = 0; half < 2; ++half) {
    const int16x8_t high = vreinterpretq_s16_u16(vshll_n_u8(vld1_u8(p + 8 * half), 8));
    const float16x8_t halves = vreinterpretq_f16_s16(vandq_s16(vshrq_n_s16(high, 1), vdupq_n_s16((int16_t)0xBFFF)));
    r.v[2 * half] = vcvt_f32_f16(vget_low_f16(halves)), r.v[2 * half + 1] = vcvt_high_f32_f16(halves);
  }
  return r;
}
struct Table { uint8x16x4_t bytes; };
inline Table load_table(const float* p) {
  Table table;
  KAIWA_QUARTERS table.bytes.val[i] = vreinterpretq_u8_f32(vld1q_f32(p + 4 * i));
  return table;
}
// Every index becomes those of its number's four bytes.
inline F32 look_up_numbers(const Table& table, uint8x16_t indices) {
  alignas(16) static const uint8_t spread[16] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
  const uint8x16_t first = vshlq_n_u8(indices, 2), step = vreinterpretq_u8_u32(vdupq_n_u32(0x03020100));
  F32 r;
  KAIWA_QUARTERS {
    const uint8x16_t of_quarter = vaddq_u8(vld1q_u8(spread), vdupq_n_u8((uint8_t)(4 * i)));
    r.v[i] = vreinterpretq_f32_u8(vqtbl4q_u8(table.bytes, vorrq_u8(vqtbl1q_u8(first, of_quarter), step)));
  }
  return r;
}
inline void look_up_pair(const Table& table, const uint8_t* p, F32& low, F32& high) {
  const uint8x16_t bytes = vld1q_u8(p);
  low = look_up_numbers(table, vandq_u8(bytes, vdupq_n_u8(15)));
  high = look_up_numbers(table, vshrq_n_u8(bytes, 4));
}

inline I32 splat(int32_t x) { I32 r; KAIWA_QUARTERS r.v[i] = vdupq_n_s32(x); return r; }
inline I32 zero() { return splat((int32_t)0); }
inline I32 add(I32 x, I32 y) { KAIWA_QUARTERS x.v[i] = vaddq_s32(x.v[i], y.v[i]); return x; }
inline F32 to_f32(I32 x) { F32 r; KAIWA_QUARTERS r.v[i] = vcvtq_f32_s32(x.v[i]); return r; }
inline I32 to_i32(F32 x) { I32 r; KAIWA_QUARTERS r.v[i] = vcvtnq_s32_f32(x.v[i]); return r; }
inline int32_t sum(I32 x) { return vaddvq_s32(vaddq_s32(vaddq_s32(x.v[0], x.v[1]), vaddq_s32(x.v[2], x.v[3]))); }
inline void store_i8(int8_t* p, I32 x) {
  const int16x8_t low = vcombine_s16(vmovn_s32(x.v[0]), vmovn_s32(x.v[1]));
  const int16x8_t high = vcombine_s16(vmovn_s32(x.v[2]), vmovn_s32(x.v[3]));
  vst1q_s8(p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}

inline void store_bytes(uint8_t* p, U8 x) { KAIWA_QUARTERS vst1q_u8(p + 16 * i, x.v[i]); }
inline U8 load_bytes(const uint8_t* p) { U8 r; KAIWA_QUARTERS r.v[i] = vld1q_u8(p + 16 * i); return r; }
inline U8 low_nibbles(U8 x) { KAIWA_QUARTERS x.v[i] = vandq_u8(x.v[i], vdupq_n_u8(15)); return x; }
inline U8 high_nibbles(U8 x) { KAIWA_QUARTERS x.v[i] = vshrq_n_u8(x.v[i], 4); return x; }
inline U8 look_up(U8 x, const uint8_t* table) {
  const uint8x16_t numbers = vld1q_u8(table);
  KAIWA_QUARTERS x.v[i] = vqtbl1q_u8(numbers, x.v[i]);
  return x;
}
template <int pair> inline U8 pairs(U8 x) {
  KAIWA_QUARTERS {
    if constexpr (pair > 0) x.v[i] = vshrq_n_u8(x.v[i], 2 * pair);
    x.v[i] = vandq_u8(x.v[i], vdupq_n_u8(3));
  }
  return x;
}
inline U8 add_where(U8 x, const uint8_t* bits, int value) {
  alignas(16) static const uint8_t select[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  KAIWA_QUARTERS {
    const uint8x16_t two = vcombine_u8(vdup_n_u8(bits[2 * i]), vdup_n_u8(bits[2 * i + 1]));
    x.v[i] = vaddq_u8(x.v[i], vandq_u8(vtstq_u8(two, vld1q_u8(select)), vdupq_n_u8((uint8_t)value)));
  }
  return x;
}
template <int pair> inline U8 add_pair(U8 x, U8 plane) {
  KAIWA_QUARTERS {
    uint8x16_t moved = plane.v[i];
    if constexpr (pair < 2) moved = vshlq_n_u8(moved, 4 - 2 * pair);
    if constexpr (pair > 2) moved = vshrq_n_u8(moved, 2 * pair - 4);
    x.v[i] = vorrq_u8(x.v[i], vandq_u8(moved, vdupq_n_u8(0x30)));
  }
  return x;
}
inline int8x16_t splat_four(const int8_t* a) {
  int32_t four;
  memcpy(&four, a, 4);
  return vreinterpretq_s8_s32(vdupq_n_s32(four));
}
// The instruction takes signed bytes: w is below 128 here, and dot4_wide serves larger w.
inline I32 dot4(I32 acc, U8 w, const int8_t* a) {
  const int8x16_t four = splat_four(a);
  KAIWA_QUARTERS acc.v[i] = vdotq_s32(acc.v[i], vreinterpretq_s8_u8(w.v[i]), four);
  return acc;
}
#undef KAIWA_QUARTERS
