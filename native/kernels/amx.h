// Products of blocks by the processor's tile unit (Intel AMX): whole numbers, so that the sums are those of AVX-512, bit
// for bit. Included by the tier that has it.

// Keeps what was stored before tiles are loaded: the intrinsics do not tell the compiler that they read memory.
inline void finish_stores() { asm volatile("" ::: "memory"); }

// Switches the unit on for as long as this lives.
//
// Registers: 0 and 1 hold products (16 rows x 16 weights), 2 and 4 inputs (16 rows x some columns), 3 and 5 weights (fours
// of these columns x 16). Each thing has two, so that one block is multiplied while the products of another are scaled.
class TileUnit {
 public:
  static constexpr bool is_there = true;

  explicit TileUnit(int columns) {
    alignas(64) Config config{};
    config.palette = 1;
    for (int i = 0; i < 8; ++i) config.rows[i] = block_rows, config.column_bytes[i] = 4 * panel_rows;
    for (int i : {2, 4}) config.column_bytes[i] = (uint16_t)columns;
    for (int i : {3, 5}) config.rows[i] = (uint8_t)(columns / 4);
    finish_stores();
    _tile_loadconfig(&config);
  }
  ~TileUnit() { _tile_release(); }
  TileUnit(const TileUnit&) = delete;

 private:
  struct Config {
    uint8_t palette, start_row, reserved[14];
    uint16_t column_bytes[16];
    uint8_t rows[16];
  };
};

// Of sixteen rows with some columns of a block; the numbers of registers must be literal.
#define KAIWA_TILE_PRODUCT(products, in, w)  \
  _tile_zero(products);                      \
  _tile_loadd(w, weights, 4 * panel_rows);   \
  _tile_loadd(in, inputs, block_columns);    \
  _tile_dpbsud(products, in, w);             \
  _tile_stored(products, to, 4 * panel_rows)

template <int turn> inline void tile_product(const int8_t* inputs, const uint8_t* weights, int32_t (*to)[panel_rows]) {
  if constexpr (turn == 0) {
    KAIWA_TILE_PRODUCT(0, 2, 3);
  } else {
    KAIWA_TILE_PRODUCT(1, 4, 5);
  }
}
#undef KAIWA_TILE_PRODUCT

struct alignas(64) TileProducts {
  int32_t low[block_rows][panel_rows], high[block_rows][panel_rows];
};

template <Format F, int turn> inline void tile_products(const InputBlock& in, const SavedBlock& block, TileProducts& to) {
  tile_product<turn>(in.quants[0], block.w, to.low);
  if constexpr (has_halves(F)) tile_product<1 - turn>(in.quants[0] + 16, block.w + 256, to.high);
}

template <Format F>
[[gnu::always_inline]] inline void add_scaled(F32 (&acc)[block_rows], const SavedBlock& block, const InputBlock& in,
                                              const TileProducts& products) {
  const BlockScales scales = saved_scales<F>(block);
  const F32 weight_sum = load(block.weight_sum);
#pragma GCC unroll 16
  for (int r = 0; r < block_rows; ++r) {
    const I32 low = _mm512_load_si512(products.low[r]);
    const I32 high = has_halves(F) ? _mm512_load_si512(products.high[r]) : zero();
    acc[r] = scaled<F>(acc[r], scales, weight_sum, in.rows[r], low, high);
  }
}

// Adds the products of `num_blocks` saved blocks with sixteen rows to their sums; `soon` as without tiles.
template <Format F>
inline void multiply_saved(const SavedBlock* blocks, const InputBlock* inputs, int num_blocks, float (*sums)[16],
                           const uint8_t* soon) {
  finish_stores();
  TileProducts even, odd;
  F32 acc[block_rows];
#pragma GCC unroll 16
  for (int r = 0; r < block_rows; ++r) acc[r] = load(sums[r]);
  tile_products<F, 0>(inputs[0], blocks[0], even);
  for (int b = 0; b < num_blocks; b += 2) {
    if (b + 1 < num_blocks) tile_products<F, 1>(inputs[b + 1], blocks[b + 1], odd);
    if (soon) fetch_block<F>(soon, b), fetch_block<F>(soon, b + 1);
    add_scaled<F>(acc, blocks[b], inputs[b], even);
    if (b + 1 == num_blocks) break;
    if (b + 2 < num_blocks) tile_products<F, 0>(inputs[b + 2], blocks[b + 2], even);
    add_scaled<F>(acc, blocks[b + 1], inputs[b + 1], odd);
  }
#pragma GCC unroll 16
  for (int r = 0; r < block_rows; ++r) store(sums[r], acc[r]);
}
