// Products of many rows in bfloat16, by the processor's tile unit (Intel AMX). Included by the tier that has it.
//
// Weights are unpacked with their scales, once for all rows, so that sums stay in the unit, in single precision, over many
// columns. Each sum is over one row alone and in the order of its columns, so that it does not depend on other rows.

// Thirty-two columns of sixteen weights: row i of the tile is columns 2i and 2i + 1 of each in turn.
struct alignas(64) WeightTile {
  uint16_t pairs[block_columns / 2][2 * panel_rows];
};

// Blocks of columns that are unpacked at once, so that those of two panels stay near.
constexpr int tiles_at_once = 16;

inline void store_pairs(uint16_t* to, F32 even, F32 odd) {
  alignas(64) static const uint16_t in_turn[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                   8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(odd, even);
  _mm512_store_si512(to, _mm512_permutexvar_epi16(_mm512_load_si512(in_turn), both));
}

// Byte `c` of each lane.
template <int c> inline F32 byte_of_lanes(U8 w) {
  return _mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(w, 8 * c), _mm512_set1_epi32(255)));
}

template <Format F> inline void unpack_tile(const Matrix& matrix, const uint8_t* panel, int b, WeightTile& to) {
  if constexpr (F == Format::BF16) {
    const uint16_t* weights = (const uint16_t*)panel;
    const int columns = matrix.columns();
    for (int i = 0, c = b * block_columns; i < block_columns / 2; ++i, c += 2) {
      const F32 even = c < columns ? load_bf16(weights + c * panel_rows) : splat(0.0f);
      const F32 odd = c + 1 < columns ? load_bf16(weights + (c + 1) * panel_rows) : splat(0.0f);
      store_pairs(to.pairs[i], even, odd);
    }
  } else {
    U8 w[8];
    load_block<F>(panel, matrix.layout(), b, w);
    const BlockScales scales = load_scales<F>(panel, matrix.layout(), b);
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) {
      const F32 scale = has_halves(F) && v >= 4 ? scales.second : scales.scale;
      const F32 min = has_halves(F) && v >= 4 ? scales.second_min : scales.min;
      store_pairs(to.pairs[2 * v], fma(byte_of_lanes<0>(w[v]), scale, min), fma(byte_of_lanes<1>(w[v]), scale, min));
      store_pairs(to.pairs[2 * v + 1], fma(byte_of_lanes<2>(w[v]), scale, min), fma(byte_of_lanes<3>(w[v]), scale, min));
    }
  }
}

// Asks for some blocks of a panel that are unpacked soon.
template <Format F> inline void fetch_blocks(const Matrix& matrix, int panel, int b, int num_blocks) {
  if (panel >= matrix.num_panels()) return;
  const PanelLayout& at = matrix.layout();
  const uint8_t* p = matrix.panel(panel);
  const auto fetch_bytes = [&](size_t begin, size_t of_block) {
    for (size_t byte = 0; byte < of_block * num_blocks; byte += 64) __builtin_prefetch(p + begin + of_block * b + byte);
  };
  fetch_bytes(0, is_float(F) ? 2 * block_columns * panel_rows : quant_bytes(F));
  if constexpr (is_float(F) || F == Format::Int8 || F == Format::Int4) return;
  fetch_bytes(at.high, high_bytes(F));
  fetch_bytes(at.scales, scale_bytes(F));
  fetch_bytes(at.mins, min_bytes(F));
}

// Where the sums of sixteen rows with a panel lie, or some that they begin as.
struct SumTile {
  float* at;
  size_t row_bytes;
};

// Adds the products of G times sixteen rows with P panels over some blocks to their sums, which begin as `from`, or as
// zeros where that is null. Registers: 0 to 3 hold sums, 4 and 5 inputs, 6 and 7 weights.
template <int G, int P>
inline void multiply_tiles(const TiledInputs& in, int group, int first_block, const WeightTile (*weights)[tiles_at_once],
                           int num_blocks, const SumTile* from, const SumTile (&to)[2]) {
  finish_stores();
  constexpr int bytes = 64, next = panel_rows;
  const InputTile* rows = in.tile(group, first_block);
  const InputTile* more_rows = G > 1 ? in.tile(group + 1, first_block) : nullptr;
  if (!from) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, from[0].at, from[0].row_bytes);
    if constexpr (P > 1) _tile_loadd(2, from[0].at + next, from[0].row_bytes);
    if constexpr (G > 1) _tile_loadd(1, from[1].at, from[1].row_bytes);
    if constexpr (G > 1 && P > 1) _tile_loadd(3, from[1].at + next, from[1].row_bytes);
  }
  for (int b = 0; b < num_blocks; ++b) {
    _tile_loadd(6, weights[0] + b, bytes);
    if constexpr (P > 1) _tile_loadd(7, weights[1] + b, bytes);
    for (int part = 0; part < in.parts; ++part) {
      _tile_stream_loadd(4, rows + b * in.parts + part, bytes);  // they come once, the weights again and again
      _tile_dpbf16ps(0, 4, 6);
      if constexpr (P > 1) _tile_dpbf16ps(2, 4, 7);
      if constexpr (G > 1) _tile_stream_loadd(5, more_rows + b * in.parts + part, bytes);
      if constexpr (G > 1) _tile_dpbf16ps(1, 5, 6);
      if constexpr (G > 1 && P > 1) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, to[0].at, to[0].row_bytes);
  if constexpr (P > 1) _tile_stored(2, to[0].at + next, to[0].row_bytes);
  if constexpr (G > 1) _tile_stored(1, to[1].at, to[1].row_bytes);
  if constexpr (G > 1 && P > 1) _tile_stored(3, to[1].at + next, to[1].row_bytes);
}

// All rows with the unpacked blocks of P panels, whose sums are columns of `out`.
template <int P>
void multiply_rows(const TiledInputs& in, int num_rows, int first_block, const WeightTile (*weights)[tiles_at_once],
                   int num_blocks, const Outputs& out) {
  const size_t row_bytes = out.stride * sizeof(float);
  const auto group_at = [&](int g) { return SumTile{out.out + (size_t)g * block_rows * out.stride, row_bytes}; };
  // What sums begin as: a bias is the same for all rows.
  const SumTile bias{const_cast<float*>(out.bias), 0}, biases[2] = {bias, bias};
  const int num_whole = num_rows / block_rows;
  const auto multiply = [&]<int G>(int group, const SumTile(&to)[2]) {
    const SumTile* from = out.accumulate || first_block > 0 ? to : out.bias ? biases : nullptr;
    multiply_tiles<G, P>(in, group, first_block, weights, num_blocks, from, to);
  };
  int g = 0;
  for (; g + 1 < num_whole; g += 2) multiply.template operator()<2>(g, {group_at(g), group_at(g + 1)});
  if (g < num_whole) multiply.template operator()<1>(g++, {group_at(g), {}});
  const int left = num_rows - num_whole * block_rows;
  if (left == 0) return;
  // Fewer than sixteen rows: what lies behind them is not ours.
  alignas(64) float sums[block_rows][P * panel_rows];
  const SumTile last = group_at(num_whole);
  for (int r = 0; r < left; ++r) memcpy(sums[r], last.at + r * out.stride, sizeof sums[r]);
  multiply.template operator()<1>(num_whole, {{sums[0], sizeof sums[0]}, {}});
  for (int r = 0; r < left; ++r) memcpy(last.at + r * out.stride, sums[r], sizeof sums[r]);
}

template <Format F>
void tiled_panels(const Matrix& matrix, int first_panel, int num_panels, const TiledInputs& in, int num_rows,
                  const Outputs& out) {
  const TileUnit unit(2 * block_columns);
  WeightTile weights[2][tiles_at_once];
  for (int b = 0; b < in.num_blocks; b += tiles_at_once) {
    const int num_blocks = in.num_blocks - b < tiles_at_once ? in.num_blocks - b : tiles_at_once;
    for (int p = 0; p < num_panels; p += 2) {
      const int num_here = num_panels - p < 2 ? 1 : 2;
      for (int other = 0; other < num_here; ++other)
        for (int i = 0; i < num_blocks; ++i)
          unpack_tile<F>(matrix, matrix.panel(first_panel + p + other), b + i, weights[other][i]);
      for (int next = p + 2; next < p + 4; ++next) fetch_blocks<F>(matrix, first_panel + next, b, num_blocks);
      const Outputs to{out.out + p * panel_rows, out.stride, out.bias ? out.bias + p * panel_rows : nullptr, out.accumulate};
      if (num_here == 2) multiply_rows<2>(in, num_rows, b, weights, num_blocks, to);
      else multiply_rows<1>(in, num_rows, b, weights, num_blocks, to);
    }
  }
}

// Columns beyond the last are zeros.
void fill_tiles(const float* x, int columns, const TiledInputs& to, int row) {
  const auto some = [&](int first) {
    const int count = columns - first < 0 ? 0 : columns - first < 16 ? columns - first : 16;
    return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), x + first);
  };
  InputTile* tile = to.tile(row / block_rows, 0);
  for (int b = 0; b < to.num_blocks; ++b) {
    F32 low = some(b * block_columns), high = some(b * block_columns + 16);
    for (int part = 0; part < to.parts; ++part, ++tile) {
      uint16_t* numbers = tile->numbers[row % block_rows];
      _mm512_store_si512(numbers, (__m512i)_mm512_cvtne2ps_pbh(high, low));
      low = sub(low, load_bf16(numbers)), high = sub(high, load_bf16(numbers + 16));
    }
  }
}
