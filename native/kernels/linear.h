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
  if constexpr (has_codes(F))
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

// A weight is scale * q + min, where q is what is stored; the last two are those of columns 16..31 where they have their
// own.
struct BlockScales {
  F32 scale, min, second, second_min;
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
  if constexpr (!has_min(F)) {
    constexpr float zero_point = 1 << zero_point_bits(F);
    s.min = mul(s.scale, splat(-zero_point));
    if constexpr (has_halves(F)) s.second_min = mul(s.second, splat(-zero_point));
  }
  return s;
}

template <Format F> inline I32 dot_product(I32 acc, U8 w, const int8_t* a) {
  if constexpr (is_wide(F)) return dot4_wide(acc, w, a);
  return dot4(acc, w, a);
}

// One block of a panel, ready for products. With weights w = scale * q + min and inputs x = s * a + z, its product with
// a row is  scale * (s * sum(q * a) + z * sum(q)) + min * sum(x).
struct Block {
  U8 w[8];
  BlockScales scales;
  F32 weight_sum;  // scale * sum(q)
};

template <Format F> inline Block unpack_block(const uint8_t* p, const PanelLayout& at, int b) {
  static const int8_t ones[4] = {1, 1, 1, 1};
  Block block;
  load_block<F>(p, at, b, block.w);
  block.scales = load_scales<F>(p, at, b);
  I32 low = zero(), high = zero();
  for (int v = 0; v < 4; ++v) low = dot_product<F>(low, block.w[v], ones);
  for (int v = 4; v < 8; ++v) high = dot_product<F>(high, block.w[v], ones);
  if constexpr (has_halves(F))
    block.weight_sum = fma(to_f32(high), block.scales.second, mul(to_f32(low), block.scales.scale));
  else
    block.weight_sum = mul(to_f32(add(low, high)), block.scales.scale);
  return block;
}

// What the integer products of one row and one block come to. `low` is over columns 0..15 and `high` over 16..31, or
// `low` over all where one scale serves both halves.
template <Format F>
inline F32 scaled(F32 acc, const BlockScales& weights, F32 weight_sum, const InputBlock::Row& in, I32 low, I32 high) {
  const F32 scale = splat(in.scale);
  acc = fma(to_f32(low), mul(weights.scale, scale), acc);
  if constexpr (has_halves(F)) acc = fma(to_f32(high), mul(weights.second, scale), acc);
  acc = fma(weight_sum, splat(in.offset), acc);
  if constexpr (!has_halves(F)) return fma(weights.min, splat(in.sum), acc);
  return fma(weights.second_min, splat(in.high_sum), fma(weights.min, splat(in.low_sum), acc));
}

// Adds the products of a block with T rows from `first` on.
template <Format F, int T> inline void multiply_block(const Block& block, const InputBlock& in, int first, F32 acc[T]) {
  I32 low[T], high[T];
  for (int t = 0; t < T; ++t) low[t] = high[t] = zero();
  // Row by row within a vector, so that neighbouring instructions never wait for each other.
  for (int v = 0; v < 8; ++v)
    for (int t = 0; t < T; ++t) {
      I32& products = has_halves(F) && v >= 4 ? high[t] : low[t];
      products = dot_product<F>(products, block.w[v], in.quants[first + t] + 4 * v);
    }
  for (int t = 0; t < T; ++t)
    acc[t] = scaled<F>(acc[t], block.scales, block.weight_sum, in.rows[first + t], low[t], high[t]);
}

// How far ahead of the kernel weights are fetched, in bytes. The processor's own guesses end with each page; this was
// the best of 2 to 32 KiB, and half as fast again as leaving it to them.
constexpr int ahead = 16384;

template <Format F> inline void fetch_block(const uint8_t* p, int b) {
  for (int line = 0; line < quant_bytes(F); line += 64) __builtin_prefetch(p + quant_bytes(F) * b + line);
}

// Few rows: blocks are unpacked as they are met.
template <Format F, int T>
void quantized_tile(const Matrix& matrix, int panel, const Inputs& in, int token, const Outputs& out) {
  const uint8_t* p = matrix.panel(panel);
  const PanelLayout at = matrix.layout();
  const InputBlock* inputs = in.row_blocks(token);
  const int lane = (in.first_row + token) % block_rows;
  F32 acc[T];
  for (int t = 0; t < T; ++t) acc[t] = splat(0.0f);
  for (int b = 0; b < matrix.columns() / block_columns; ++b) {
    fetch_block<F>(p + ahead, b);
    multiply_block<F, T>(unpack_block<F>(p, at, b), inputs[b], lane, acc);
  }
  for (int t = 0; t < T; ++t) write(out, token + t, acc[t]);
}

// ---- many rows ------------------------------------------------------------------------------------------------------

// Blocks are unpacked once for as many rows as keep their sums near, in pieces that fit the first-level cache.
constexpr int rows_at_once = 128;
constexpr int blocks_at_once = 32;
#if defined(KAIWA_AVX512)
constexpr int rows_in_registers = 8;
#else
constexpr int rows_in_registers = 4;
#endif

struct alignas(64) SavedBlock {
  uint8_t w[512];
  float scale[16], second[16], min[16], second_min[16], weight_sum[16];
};

template <Format F> inline void save(const Block& block, SavedBlock& to) {
  for (int v = 0; v < 8; ++v) store_bytes(to.w + 64 * v, block.w[v]);
  store(to.scale, block.scales.scale);
  store(to.min, block.scales.min);
  if constexpr (has_halves(F)) store(to.second, block.scales.second), store(to.second_min, block.scales.second_min);
  store(to.weight_sum, block.weight_sum);
}

template <Format F> inline BlockScales saved_scales(const SavedBlock& from) {
  BlockScales scales;
  scales.scale = load(from.scale);
  scales.min = load(from.min);
  if constexpr (has_halves(F)) scales.second = load(from.second), scales.second_min = load(from.second_min);
  return scales;
}

#if defined(KAIWA_AMX)
#include "amx.h"
#else
struct TileUnit {  // there is none
  static constexpr bool is_there = false;
  explicit TileUnit(int) {}
};

// Adds the products of `num_blocks` saved blocks with sixteen rows to their sums. As many blocks at `soon` are fetched
// meanwhile, unless it is null: unpacking them would wait for memory.
template <Format F>
inline void multiply_saved(const SavedBlock* blocks, const InputBlock* inputs, int num_blocks, float (*sums)[16],
                           const uint8_t* soon) {
  constexpr int T = rows_in_registers;
  for (int first = 0; first < block_rows; first += T) {
    F32 acc[T];
    for (int t = 0; t < T; ++t) acc[t] = load(sums[first + t]);
    for (int b = 0; b < num_blocks; ++b) {
      if (soon && first == 0) fetch_block<F>(soon, b);
      Block block;
      for (int v = 0; v < 8; ++v) block.w[v] = load_bytes(blocks[b].w + 64 * v);
      block.scales = saved_scales<F>(blocks[b]);
      block.weight_sum = load(blocks[b].weight_sum);
      multiply_block<F, T>(block, inputs[b], first, acc);
    }
    for (int t = 0; t < T; ++t) store(sums[first + t], acc[t]);
  }
}
#endif

// Rows in the groups of sixteen that they lie in; of the others of these groups nothing is written.
template <Format F> void quantized_rows(const Matrix& matrix, int panel, const Inputs& in, int num_rows, const Outputs& out) {
  const uint8_t* p = matrix.panel(panel);
  const uint8_t* next = panel + 1 < matrix.num_panels() ? matrix.panel(panel + 1) : nullptr;
  const PanelLayout at = matrix.layout();
  const int all_blocks = matrix.columns() / block_columns;
  SavedBlock blocks[blocks_at_once];
  alignas(64) float sums[rows_at_once][16];
  [[maybe_unused]] const TileUnit unit(has_halves(F) ? block_columns / 2 : block_columns);
  const int before = in.first_row % block_rows;  // rows of the first group that are not ours
  for (int from = -before; from < num_rows; from += rows_at_once) {
    const int to = from + rows_at_once < num_rows ? from + rows_at_once : num_rows;
    memset(sums, 0, sizeof sums);
    for (int b = 0; b < all_blocks; b += blocks_at_once) {
      const int num_blocks = all_blocks - b < blocks_at_once ? all_blocks - b : blocks_at_once;
      for (int i = 0; i < num_blocks; ++i) save<F>(unpack_block<F>(p, at, b + i), blocks[i]);
      for (int row = from; row < to; row += block_rows)
        multiply_saved<F>(blocks, in.row_blocks(row) + b, num_blocks, sums + (row - from),
                          next && row < block_rows ? next + quant_bytes(F) * b : nullptr);
    }
    for (int row = from < 0 ? 0 : from; row < to; ++row) write(out, row, load(sums[row - from]));
  }
}

template <Format F> void panel(const Matrix& matrix, int index, const Inputs& in, int num_tokens, const Outputs& out) {
  const auto tile = [&]<int T>(int token) {
    if constexpr (is_float(F) && !is_plain(F)) grouped_tile<F, T>(matrix, index, in, token, out);
    else if constexpr (is_float(F)) float_tile<F, T>(matrix, index, in, token, out);
    else quantized_tile<F, T>(matrix, index, in, token, out);
    return T;
  };
  if constexpr (!is_float(F))
    if (num_tokens > 8) return quantized_rows<F>(matrix, index, in, num_tokens, out);
  for (int t = 0; t < num_tokens;) {
    int fitting = num_tokens - t;
    if (!is_float(F)) {  // no further than the group that the row lies in
      const int room = block_rows - (in.first_row + t) % block_rows;
      fitting = fitting < room ? fitting : room;
    }
    if (fitting >= 8) t += tile.template operator()<8>(t);
    else if (fitting >= 4) t += tile.template operator()<4>(t);
    else if (fitting >= 2) t += tile.template operator()<2>(t);
    else t += tile.template operator()<1>(t);
  }
}
