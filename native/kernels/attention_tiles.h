// Attention of the rows of a prompt by the processor's tile unit. Included by the tier that has it.
//
// All scores of up to 512 keys are there before the first is weighed, so that no sum is scaled again. Products are of
// bfloat16, sums in single precision.

constexpr int max_key_blocks = max_attention_keys / cache_block_tokens;
constexpr size_t score_stride = max_attention_keys + 16;  // no power of two, which would crowd a few sets of the cache

struct AttentionTiles {
  WeightTile keys[2][tiles_at_once], values[2][tiles_at_once];
  InputTile weights[max_attention_rows / block_rows * max_key_blocks];
  InputTile queries[max_attention_rows / block_rows * max_head_dim / block_columns];
  float scores[max_attention_rows * score_stride];
};
static_assert(max_key_blocks <= tiles_at_once && sizeof(AttentionTiles) % sizeof(InputTile) == 0);

// Of a block's 32 keys, `num_blocks` times 32 numbers from block `first` on, each in two tiles.
template <class Block>
void pair_keys(const AttentionTask& task, const uint8_t* keys, int first, int num_blocks, WeightTile (*to)[tiles_at_once]) {
  const auto at = [&](int d, int half) {
    return d < task.head_dim ? Block::at(keys, (size_t)d * cache_block_tokens + half * panel_rows) : splat(0.0f);
  };
  for (int b = 0; b < num_blocks; ++b)
    for (int i = 0, d = (first + b) * block_columns; i < block_columns / 2; ++i, d += 2)
      for (int half = 0; half < 2; ++half) store_pairs(to[half][b].pairs[i], at(d, half), at(d + 1, half));
}

// Sixteen numbers of a block's values from `d` on; what lies behind the last key may be anything.
template <class Block> void pair_values(const AttentionTask& task, const uint8_t* values, int d, int num_keys, WeightTile& to) {
  const auto at = [&](int key) {
    return key < num_keys ? Block::at(values, (size_t)key * task.padded_dim + d) : splat(0.0f);
  };
  for (int key = 0; key < cache_block_tokens; key += 2) store_pairs(to.pairs[key / 2], at(key), at(key + 1));
}

// Turns a row's scores of the blocks from `first` on into weights.
void weigh_whole_row(const AttentionTask& task, int row, int first, int num_blocks, float* scores, const TiledInputs& weights) {
  const int position = task.first_position + row / task.heads_per_group;
  const int end = position + 1 < task.end_key ? position + 1 : task.end_key;
  const int begin = task.window > 0 && position - task.window + 1 > 0 ? position - task.window + 1 : 0;
  // Which keys of a block the row sees.
  const auto seen = [&](int block) {
    const auto below = [&](int key) {
      const int count = key - task.first_key - block * cache_block_tokens;
      return count <= 0 ? 0u : count >= 32 ? ~0u : (1u << count) - 1;
    };
    return below(end) & ~below(begin);
  };
  const bool is_scaled = task.format == CacheFormat::Int8;
  F32 peaks = splat(no_score);
  for (int b = first; b < num_blocks; ++b) {
    const uint32_t mask = seen(b);
    const float* scales = is_scaled ? cache_scales(task.keys[b], task.padded_dim) : nullptr;
    for (int half = 0; half < 2; ++half) {
      float* at = scores + b * cache_block_tokens + 16 * half;
      F32 x = load(at);
      if (scales) x = mul(x, load(scales + 16 * half));
      if (task.softcap > 0) x = softcap(x, task.softcap);
      x = _mm512_mask_blend_ps((__mmask16)(mask >> 16 * half), splat(no_score), x);
      peaks = maximum(peaks, x);
      store(at, x);
    }
  }
  const F32 peak = splat(largest(peaks));
  F32 sums = splat(0.0f);
  for (int b = first; b < num_blocks; ++b) {
    const uint32_t mask = seen(b);
    const float* scales = is_scaled ? cache_scales(task.values[b], task.padded_dim) : nullptr;
    F32 halves[2];
    for (int half = 0; half < 2; ++half) {
      const F32 x = load(scores + b * cache_block_tokens + 16 * half);
      halves[half] = _mm512_maskz_mov_ps((__mmask16)(mask >> 16 * half), exponential(sub(x, peak)));
      sums = add(sums, halves[half]);
      if (scales) halves[half] = _mm512_maskz_mul_ps((__mmask16)(mask >> 16 * half), halves[half], load(scales + 16 * half));
    }
    uint16_t* to = weights.tile(row / block_rows, b - first)->numbers[row % block_rows];
    _mm512_store_si512(to, (__m512i)_mm512_cvtne2ps_pbh(halves[1], halves[0]));
  }
  task.largest[row] = largest(peaks);
  task.sums[row] = sum(sums);
}

void attend_tiles(const AttentionTask& task) {
  const TileUnit unit(2 * block_columns);
  AttentionTiles& tiles = *(AttentionTiles*)task.tiles;
  const int dim_blocks = (task.head_dim + block_columns - 1) / block_columns;
  const TiledInputs queries{tiles.queries, dim_blocks, 1};
  for (int r = 0; r < task.num_rows; ++r) fill_tiles(task.queries + (size_t)r * task.padded_dim, task.head_dim, queries, r);

  const int last_position = task.first_position + (task.num_rows - 1) / task.heads_per_group;
  const int end = last_position + 1 < task.end_key ? last_position + 1 : task.end_key;
  const int num_blocks = (end - task.first_key + cache_block_tokens - 1) / cache_block_tokens;
  const int lowest = task.window > 0 ? task.first_position - task.window + 1 - task.first_key : 0;
  const int first = lowest > 0 ? lowest / cache_block_tokens : 0;
  by_format(task.format, [&]<class Block>() {
    for (int b = first; b < num_blocks; ++b)
      for (int d = 0; d < dim_blocks; d += tiles_at_once) {
        const int count = dim_blocks - d < tiles_at_once ? dim_blocks - d : tiles_at_once;
        pair_keys<Block>(task, task.keys[b], d, count, tiles.keys);
        multiply_rows<2>(queries, task.num_rows, d, tiles.keys, count,
                         {tiles.scores + b * cache_block_tokens, score_stride, nullptr, false});
      }
    const TiledInputs weights{tiles.weights, num_blocks - first, 1};
    for (int r = 0; r < task.num_rows; ++r) weigh_whole_row(task, r, first, num_blocks, tiles.scores + r * score_stride, weights);
    for (int d = 0; d < task.padded_dim; d += 2 * panel_rows) {
      const bool is_pair = d + panel_rows < task.padded_dim;
      for (int b = first; b < num_blocks; ++b)
        for (int other = 0; other <= (int)is_pair; ++other)
          pair_values<Block>(task, task.values[b], d + other * panel_rows, end - task.first_key - b * cache_block_tokens,
                             tiles.values[other][b - first]);
      const Outputs out{task.weighted + d, (size_t)task.padded_dim, nullptr, false};
      if (is_pair) multiply_rows<2>(weights, task.num_rows, 0, tiles.values, num_blocks - first, out);
      else multiply_rows<1>(weights, task.num_rows, 0, tiles.values, num_blocks - first, out);
    }
  });
}
