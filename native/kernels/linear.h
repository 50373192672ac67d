// Products of one panel of a matrix with several input rows. Included once per tier.
//
// A row's result never depends on how many others are computed with it: the order of every sum is fixed by the panel.

inline void write(const Outputs& to, int token, F32 value) {
  float* out = to.out + token * to.stride;
  if (to.bias) value = add(value, load(to.bias));
  if (to.accumulate) value = add(value, load(out));
  store(out, value);
}

// ---- float matrices -------------------------------------------------------------------------------------------------

template <Format F> inline F32 load_column(const uint8_t* p, int column) {
  if constexpr (F == Format::F32) return load((const float*)p + column * panel_rows);
  if constexpr (F == Format::F16) return load_f16((const uint16_t*)p + column * panel_rows);
  if constexpr (F == Format::BF16) return load_bf16((const uint16_t*)p + column * panel_rows);
}

template <Format F, int T> void float_tile(const Matrix& matrix, int panel, const Inputs& in, int token, const Outputs& out) {
  const uint8_t* weights = matrix.panel(panel);
  const int columns = matrix.columns();
  F32 even[T], odd[T];
  for (int t = 0; t < T; ++t) even[t] = odd[t] = splat(0.0f);
  const float* x = in.floats + token * in.stride;
  int c = 0;
  for (; c + 1 < columns; c += 2) {
    const F32 w0 = load_column<F>(weights, c), w1 = load_column<F>(weights, c + 1);
    for (int t = 0; t < T; ++t) {
      even[t] = fma(w0, splat(x[t * in.stride + c]), even[t]);
      odd[t] = fma(w1, splat(x[t * in.stride + c + 1]), odd[t]);
    }
  }
  if (c < columns)
    for (int t = 0; t < T; ++t) even[t] = fma(load_column<F>(weights, c), splat(x[t * in.stride + c]), even[t]);
  for (int t = 0; t < T; ++t) write(out, token + t, add(even[t], odd[t]));
}

// Columns c and c + 1 of sixteen rows, to be multiplied by their group's scale; a pair lies at `p`.
template <Format F> inline void load_pair(const uint8_t* p, const Table& table, F32& w0, F32& w1) {
  if constexpr (F == Format::Float8) w0 = load_e4m3(p), w1 = load_e4m3(p + panel_rows);
  if constexpr (F == Format::Table4) look_up_pair(table, p, w0, w1);
}

// Each group adds up for itself, so that its scale is one product.
template <Format F, int T>
void grouped_tile(const Matrix& matrix, int panel, const Inputs& in, int token, const Outputs& out) {
  constexpr int pair_bytes = quant_bytes(F) / (block_columns / 2);
  const uint8_t* weights = matrix.panel(panel);
  const PanelLayout& at = matrix.layout();
  const int columns = matrix.columns();
  const Table table = load_table(matrix.table);
  const float* scales = (const float*)(weights + at.scales);
  const float* x = in.floats + token * in.stride;
  F32 acc[T];
  for (int t = 0; t < T; ++t) acc[t] = splat(0.0f);
  for (int first = 0; first < columns; first += at.group, scales += panel_rows) {
    const int end = first + at.group < columns ? first + at.group : columns;
    F32 even[T], odd[T];
    for (int t = 0; t < T; ++t) even[t] = odd[t] = splat(0.0f);
    int c = first;
    for (; c + 1 < end; c += 2, weights += pair_bytes) {
      F32 w0, w1;
      load_pair<F>(weights, table, w0, w1);
      for (int t = 0; t < T; ++t) {
        even[t] = fma(w0, splat(x[t * in.stride + c]), even[t]);
        odd[t] = fma(w1, splat(x[t * in.stride + c + 1]), odd[t]);
      }
    }
    if constexpr (F == Format::Float8)
      if (c < end) {
        const F32 w = load_e4m3(weights);
        for (int t = 0; t < T; ++t) even[t] = fma(w, splat(x[t * in.stride + c]), even[t]);
        weights += panel_rows;
      }
    F32 scale = load(scales);
    if constexpr (F == Format::Float8) scale = mul(scale, splat(256.0f));
    for (int t = 0; t < T; ++t) acc[t] = fma(add(even[t], odd[t]), scale, acc[t]);
  }
  for (int t = 0; t < T; ++t) write(out, token + t, acc[t]);
}

// ---- quantized matrices ---------------------------------------------------------------------------------------------

// The eight vectors of one block: vector v holds columns 4v..4v+3 of the sixteen rows.
template <Format F> inline void load_block(const uint8_t* p, const PanelLayout& at, int b, U8 w[8]) {
  if constexpr (quant_bytes(F) == 512) {
    for (int v = 0; v < 8; ++v) w[v] = load_bytes(p + 512 * b + 64 * v);
  } else if constexpr (quant_bytes(F) == 128) {
    for (int half = 0; half < 2; ++half) {
      const U8 plane = load_bytes(p + 128 * b + 64 * half);
      U8* four = w + 4 * half;
      four[0] = pairs<0>(plane), four[1] = pairs<1>(plane), four[2] = pairs<2>(plane), four[3] = pairs<3>(plane);
    }
  } else {
    for (int v = 0; v < 4; ++v) {
      const U8 pair = load_bytes(p + 256 * b + 64 * v);
      w[v] = low_nibbles(pair);
      w[v + 4] = high_nibbles(pair);
    }
  }
  if constexpr (codes(F) != nullptr)
    for (int v = 0; v < 8; ++v) w[v] = look_up(w[v], codes(F));
  if constexpr (high_bytes(F) == 64)
    for (int v = 0; v < 8; ++v) w[v] = add_where(w[v], p + at.high + 64 * b + 8 * v, quant_bytes(F) == 128 ? 4 : 16);
  if constexpr (high_bytes(F) == 128)
    for (int half = 0; half < 2; ++half) {
      const U8 plane = load_bytes(p + at.high + 128 * b + 64 * half);
      U8* four = w + 4 * half;
      four[0] = add_pair<0>(four[0], plane);
      four[1] = add_pair<1>(four[1], plane);
      four[2] = add_pair<2>(four[2], plane);
      four[3] = add_pair<3>(four[3], plane);
    }
}

struct BlockScales {
  F32 scale, min, second, second_min;  // the last two are those of columns 16..31 where they have their own
};

template <Format F> inline BlockScales load_scales(const uint8_t* p, const PanelLayout& at, int b) {
  BlockScales s;
  const uint8_t* scales = p + at.scales + scale_bytes(F) * b;
  if constexpr (is_super(F)) {
    const F32 d = load_f16((const uint16_t*)(p + at.d + b / 8 * 32));
    F32 dmin;
    if constexpr (has_min(F)) dmin = sub(splat(0.0f), load_f16((const uint16_t*)(p + at.dmin + b / 8 * 32)));
    if constexpr (F == Format::Q2_K) {
      s.scale = mul(d, load_nibbles<0>(scales)), s.second = mul(d, load_nibbles<0>(scales + 16));
      s.min = mul(dmin, load_nibbles<4>(scales)), s.second_min = mul(dmin, load_nibbles<4>(scales + 16));
    } else if constexpr (has_min(F)) {
      s.scale = mul(d, load_u8(scales));
      s.min = mul(dmin, load_u8(p + at.mins + 16 * b));
    } else {
      s.scale = mul(d, load_i8((const int8_t*)scales));
      if constexpr (has_halves(F)) s.second = mul(d, load_i8((const int8_t*)scales + 16));
    }
  } else if constexpr (F == Format::Int8) {
    s.scale = load((const float*)(p + at.scales));
  } else if constexpr (F == Format::Int4) {
    const int group = b * block_columns / at.group;
    s.scale = load_f16((const uint16_t*)(p + at.scales + 32 * group));
    s.min = sub(splat(0.0f), mul(s.scale, load_u8(p + at.mins + 16 * group)));
  } else if constexpr (F == Format::MXFP4) {
    s.scale = load_e8m0(scales);
  } else {
    s.scale = load_f16((const uint16_t*)scales);
    if constexpr (has_min(F)) s.min = load_f16((const uint16_t*)(p + at.mins + 32 * b));
  }
  return s;
}

template <Format F> inline I32 dot_product(I32 acc, U8 w, const int8_t* a) {
  if constexpr (is_wide(F)) return dot4_wide(acc, w, a);
  return dot4(acc, w, a);
}

// The accumulator's start takes the zero point away from every product at once.
template <Format F> inline I32 start(int32_t negative_sum) {
  if constexpr (zero_point_bits(F) == 0) return zero();
  return shift_left<zero_point_bits(F)>(splat(negative_sum));
}

// With weights w = scale * (q - zero) + min and inputs x = s * a + z, a block's product is
//   scale * (s * sum((q - zero) * a) + z * sum(q - zero)) + min * sum(x).
template <Format F, int T>
void quantized_tile(const Matrix& matrix, int panel, const Inputs& in, int token, const Outputs& out) {
  static const int8_t ones[4] = {1, 1, 1, 1};
  const uint8_t* p = matrix.panel(panel);
  const PanelLayout& at = matrix.layout();
  const int blocks = matrix.columns() / block_columns, in_blocks = in.columns / block_columns;
  const size_t first = (size_t)token * in_blocks;
  F32 acc[T];
  for (int t = 0; t < T; ++t) acc[t] = splat(0.0f);
  for (int b = 0; b < blocks; ++b) {
    U8 w[8];
    load_block<F>(p, at, b, w);
    const BlockScales s = load_scales<F>(p, at, b);
    I32 low_sum = start<F>(-16), high_sum = start<F>(-16);
    for (int v = 0; v < 4; ++v) low_sum = dot_product<F>(low_sum, w[v], ones);
    for (int v = 4; v < 8; ++v) high_sum = dot_product<F>(high_sum, w[v], ones);
    F32 weight_sum;
    if constexpr (has_halves(F))
      weight_sum = fma(to_f32(high_sum), s.second, mul(to_f32(low_sum), s.scale));
    else
      weight_sum = mul(to_f32(add(low_sum, high_sum)), s.scale);
    for (int t = 0; t < T; ++t) {
      const size_t block = first + (size_t)t * in_blocks + b;
      const int8_t* a = in.quants + block_columns * block;
      const int32_t* negative = in.negative_sums + 2 * block;
      const F32 scale = splat(in.scales[block]);
      if constexpr (has_halves(F)) {
        I32 low = start<F>(negative[0]), high = start<F>(negative[1]);
        for (int v = 0; v < 4; ++v) low = dot_product<F>(low, w[v], a + 4 * v);
        for (int v = 4; v < 8; ++v) high = dot_product<F>(high, w[v], a + 4 * v);
        acc[t] = fma(to_f32(low), mul(s.scale, scale), acc[t]);
        acc[t] = fma(to_f32(high), mul(s.second, scale), acc[t]);
      } else {
        I32 products = start<F>(negative[0] + negative[1]);
        for (int v = 0; v < 8; ++v) products = dot_product<F>(products, w[v], a + 4 * v);
        acc[t] = fma(to_f32(products), mul(s.scale, scale), acc[t]);
      }
      acc[t] = fma(weight_sum, splat(in.offsets[block]), acc[t]);
      if constexpr (F == Format::Q2_K) {
        const F32 offsets = splat(16.0f * in.offsets[block]);
        acc[t] = fma(s.min, fma(scale, splat((float)-negative[0]), offsets), acc[t]);
        acc[t] = fma(s.second_min, fma(scale, splat((float)-negative[1]), offsets), acc[t]);
      } else if constexpr (has_min(F)) {
        acc[t] = fma(s.min, splat(in.sums[block]), acc[t]);
      }
    }
  }
  for (int t = 0; t < T; ++t) write(out, token + t, acc[t]);
}

template <Format F> void panel(const Matrix& matrix, int index, const Inputs& in, int num_tokens, const Outputs& out) {
  const auto tile = [&]<int T>(int token) {
    if constexpr (is_float(F) && !is_plain(F)) grouped_tile<F, T>(matrix, index, in, token, out);
    else if constexpr (is_float(F)) float_tile<F, T>(matrix, index, in, token, out);
    else quantized_tile<F, T>(matrix, index, in, token, out);
  };
  int t = 0;
  for (; t + 8 <= num_tokens; t += 8) tile.template operator()<8>(t);
  if (num_tokens - t >= 4) tile.template operator()<4>(t), t += 4;
  if (num_tokens - t >= 2) tile.template operator()<2>(t), t += 2;
  if (num_tokens - t >= 1) tile.template operator()<1>(t);
}
