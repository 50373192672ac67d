// Work on single rows: norms, activations, quantization. Included once per tier.

void rms_norm(const float* x, const float* weight, float eps, int count, float* out) {
  F32 squares = splat(0.0f);
  for (int i = 0; i < count; i += 16) {
    F32 v = load(x + i);
    squares = fma(v, v, squares);
  }
  const F32 scale = splat(1.0f / __builtin_sqrtf(sum(squares) / (float)count + eps));
  for (int i = 0; i < count; i += 16) store(out + i, mul(load(weight + i), mul(load(x + i), scale)));
}

// 0 times a number is 0, unless it is infinite or NaN.
inline bool is_finite(const float* x, int count) {
  F32 zeros = splat(0.0f);
  for (int i = 0; i < count; i += 16) zeros = fma(load(x + i), splat(0.0f), zeros);
  return sum(zeros) == 0.0f;
}

// What is not finite stays so in every product, for the sampler to see, and is not rounded to some number that is.
void quantize_nothing(const Inputs& to, float* residual) {
  InputBlock* block = to.row_blocks(0);
  const int r = to.first_row % block_rows;
  for (int b = 0; b < to.columns / block_columns; ++b, ++block) {
    memset(block->quants[r], 0, block_columns);
    constexpr float nan = __builtin_nanf("");
    block->rows[r] = {nan, nan, nan, nan, nan};
  }
  if (residual) memset(residual, 0, sizeof(float) * to.columns);
}

void quantize(const float* x, const Inputs& to, float* residual) {
  constexpr float least_range = 1e-36f;  // so that 254 / range is finite
  if (!is_finite(x, to.columns)) return quantize_nothing(to, residual);
  InputBlock* block = to.row_blocks(0);
  const int r = to.first_row % block_rows;
  for (int b = 0; b < to.columns / block_columns; ++b, ++block, x += 32) {
    const F32 low = load(x), high = load(x + 16);
    const float top = largest(maximum(low, high)), bottom = smallest(minimum(low, high));
    const float middle = 0.5f * top + 0.5f * bottom, range = top - bottom, step = range / 254.0f;
    const F32 offset = splat(middle), inverse = splat(range > least_range ? 254.0f / range : 0.0f);
    const I32 low_q = to_i32(mul(sub(low, offset), inverse)), high_q = to_i32(mul(sub(high, offset), inverse));
    store_i8(block->quants[r], low_q);
    store_i8(block->quants[r] + 16, high_q);
    if (residual) {
      store(residual + 32 * b, sub(low, fma(to_f32(low_q), splat(step), offset)));
      store(residual + 32 * b + 16, sub(high, fma(to_f32(high_q), splat(step), offset)));
    }
    const float low_sum = step * (float)sum(low_q) + 16.0f * middle, high_sum = step * (float)sum(high_q) + 16.0f * middle;
    block->rows[r] = {step, middle, low_sum + high_sum, low_sum, high_sum};
  }
}

inline F32 sigmoid_times(F32 x, F32 argument) {
  return div(x, add(splat(1.0f), exponential(sub(splat(0.0f), argument))));
}

void gate(Activation activation, const float* gates, const float* up, int count, float* out) {
  for (int i = 0; i < count; i += 16) {
    F32 x = load(gates + i), factor = load(up + i);
    F32 y;
    if (activation == Activation::Silu) {
      y = sigmoid_times(x, x);
    } else if (activation == Activation::Sigmoid) {
      y = sigmoid_times(splat(1.0f), x);
    } else if (activation == Activation::ClampedSilu) {
      // GPT-OSS's: both within 7, a steeper sigmoid, and one more of the other.
      x = minimum(x, splat(7.0f));
      factor = add(minimum(maximum(factor, splat(-7.0f)), splat(7.0f)), splat(1.0f));
      y = sigmoid_times(x, mul(x, splat(1.702f)));
    } else {
      // 0.5 x (1 + tanh(u)) = x * sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3)
      const F32 cubic = fma(mul(mul(x, x), x), splat(0.044715f), x);
      y = sigmoid_times(x, mul(cubic, splat(1.5957691216f)));
    }
    store(out + i, mul(y, factor));
  }
}

void softcap_row(float* x, int count, float cap) {
  for (int i = 0; i < count; i += 16) store(x + i, softcap(load(x + i), cap));
}

float sum_exponentials(const float* x, int count, float peak) {
  F32 total = splat(0.0f);
  for (int i = 0; i < count; i += 16) total = add(total, exponential(sub(load(x + i), splat(peak))));
  return sum(total);
}

void add_rows(const float* x, int count, float* out) {
  for (int i = 0; i < count; i += 16) store(out + i, add(load(out + i), load(x + i)));
}

void store_half(const float* x, int count, uint16_t* out) {
  for (int i = 0; i < count; i += 16) store_f16(out + i, load(x + i));
}

float store_scaled_bytes(const float* x, int count, int8_t* out) {
  constexpr float least = 1e-36f;  // so that 127 / peak is finite
  F32 peaks = splat(0.0f);
  for (int i = 0; i < count; i += 16) peaks = maximum(absolute(load(x + i)), peaks);
  const float peak = largest(peaks);
  if (!is_finite(x, count)) {
    memset(out, 0, count);
    return __builtin_nanf("");  // for the sampler to see, as in `quantize`
  }
  const F32 inverse = splat(peak > least ? 127.0f / peak : 0.0f);
  for (int i = 0; i < count; i += 16) store_i8(out + i, to_i32(mul(load(x + i), inverse)));
  return peak / 127.0f;
}
