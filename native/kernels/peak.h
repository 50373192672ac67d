// Dot products of bytes that never leave the nearest cache: what no matrix product of this tier can exceed.
// Included once per tier.

// Sums in flight: enough to hide how long one takes, few enough for the registers.
#if defined(KAIWA_AVX512)
constexpr int peak_sums = 16;
#else
constexpr int peak_sums = 4;
#endif

void multiply_bytes(int count, int32_t* out) {
  alignas(64) static const uint8_t weights[64] = {1, 2, 3, 4, 5, 6, 7, 8};
  static const int8_t inputs[4] = {1, -2, 3, -4};
  I32 sums[peak_sums];
  for (I32& s : sums) s = zero();
  const uint8_t* from = weights;
  for (int i = 0; i < count; i += peak_sums) {
    asm volatile("" : "+r"(from));  // or the compiler would multiply only once
    const U8 w = load_bytes(from);
    for (I32& s : sums) s = dot4(s, w, inputs);
  }
  for (int i = 1; i < peak_sums; ++i) sums[0] = add(sums[0], sums[i]);
  *out = sum(sums[0]);
}
