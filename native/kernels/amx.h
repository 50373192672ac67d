// Products of blocks by the processor's tile unit (Intel AMX): whole numbers, so that the sums are those of every other
// tier, bit for bit. Included by the tier that has it.

// Switches the unit on for as long as this lives. Registers: 0 and 1 hold products (8 rows x 16 weights), 2 and 4 inputs
// (8 rows x 32 or 16 columns), 3 and 5 weights (fours of these columns x 16).
class TileUnit {
 public:
  static constexpr bool is_there = true;

  TileUnit() {
    alignas(64) Config config{};
    config.palette = 1;
    constexpr int rows[6] = {8, 8, 8, 8, 8, 4}, bytes[6] = {64, 64, 32, 64, 16, 64};
    for (int i = 0; i < 6; ++i) config.rows[i] = (uint8_t)rows[i], config.column_bytes[i] = (uint16_t)bytes[i];
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

// The products of some columns of a block with eight rows; the numbers of registers must be literal.
#define KAIWA_TILE_PRODUCT(sums, in, w, from, weights, to) \
  _tile_zero(sums);                                        \
  _tile_loadd(in, from, block_columns);                    \
  _tile_loadd(w, weights, 64);                             \
  _tile_dpbsud(sums, in, w);                               \
  _tile_stored(sums, to, 64)

template <Format F>
inline void multiply_by_tiles(const SavedBlock* blocks, const InputBlock* inputs, int num_blocks, float (*sums)[16]) {
  alignas(64) int32_t lows[block_rows][16], highs[block_rows][16];
  F32 acc[block_rows];
  for (int r = 0; r < block_rows; ++r) acc[r] = load(sums[r]);
  for (int b = 0; b < num_blocks; ++b) {
    const InputBlock& in = inputs[b];
    if constexpr (has_halves(F)) {
      KAIWA_TILE_PRODUCT(0, 4, 5, in.quants, blocks[b].w, lows);
      KAIWA_TILE_PRODUCT(1, 4, 5, in.quants[0] + 16, blocks[b].w + 256, highs);
    } else {
      KAIWA_TILE_PRODUCT(0, 2, 3, in.quants, blocks[b].w, lows);
    }
    const Block block = load_saved<F>(blocks[b]);
    for (int r = 0; r < block_rows; ++r) {
      const int32_t negative = has_halves(F) ? in.negative_lows[r] : in.negative_sums[r];
      const I32 low = add(_mm512_load_si512(lows[r]), start<F>(negative));
      const I32 high = has_halves(F) ? add(_mm512_load_si512(highs[r]), start<F>(in.negative_highs[r])) : zero();
      acc[r] = scaled<F>(acc[r], block, in, r, low, high);
    }
  }
  for (int r = 0; r < block_rows; ++r) store(sums[r], acc[r]);
}

#undef KAIWA_TILE_PRODUCT
