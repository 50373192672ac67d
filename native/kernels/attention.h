// Attention of some rows over blocks of the key-value cache, with a running softmax. Included once per tier.
//
// Keys lie transposed, so that sixteen positions' scores are sixteen lanes and no sum runs across lanes.

// Below every real score, and finite, so that a difference of two is 0 and not NaN.
constexpr float no_score = -1e30f;

// Sixteen numbers of a head in a block, without their scales.
struct HalfBlock {
  static constexpr size_t bytes = 2;
  static F32 at(const uint8_t* p, size_t i) { return load_f16((const uint16_t*)p + i); }
};
struct FloatBlock {
  static constexpr size_t bytes = 4;
  static F32 at(const uint8_t* p, size_t i) { return load((const float*)p + i); }
};
struct ByteBlock {
  static constexpr size_t bytes = 1;
  static F32 at(const uint8_t* p, size_t i) { return load_i8((const int8_t*)p + i); }
};

// Calls `body<Block>()` with what reads this format.
template <class Body> void by_format(CacheFormat format, const Body& body) {
  switch (format) {
    case CacheFormat::Float16: return body.template operator()<HalfBlock>();
    case CacheFormat::Float32: return body.template operator()<FloatBlock>();
    case CacheFormat::Int8: return body.template operator()<ByteBlock>();
  }
}

// Asks for 32 numbers that are needed soon, the first of which is number i.
template <class Block> inline void fetch(const uint8_t* p, size_t i) {
  for (size_t byte = 0; byte < 32 * Block::bytes; byte += 64) __builtin_prefetch(p + i * Block::bytes + byte);
}

// `next` are the next block's keys, which are fetched meanwhile; so are values below.
template <class Block, int R>
void score_rows(const AttentionTask& task, const float* queries, const uint8_t* keys, const uint8_t* next, float* scores) {
  F32 low[R], high[R];
  for (int r = 0; r < R; ++r) low[r] = high[r] = splat(0.0f);
  for (int d = 0; d < task.head_dim; ++d) {
    fetch<Block>(next, (size_t)d * 32);
    const F32 k0 = Block::at(keys, (size_t)d * 32), k1 = Block::at(keys, (size_t)d * 32 + 16);
    for (int r = 0; r < R; ++r) {
      const F32 q = splat(queries[(size_t)r * task.padded_dim + d]);
      low[r] = fma(q, k0, low[r]);
      high[r] = fma(q, k1, high[r]);
    }
  }
  for (int r = 0; r < R; ++r) store(scores + 32 * r, low[r]), store(scores + 32 * r + 16, high[r]);
}

template <class Block, int R>
void add_values(const AttentionTask& task, const float* weights, const uint8_t* values, const uint8_t* next, int num_keys,
                float* weighted) {
  const size_t stride = task.padded_dim;
  int d = 0;
  for (; d + 32 <= task.padded_dim; d += 32) {
    F32 low[R], high[R];
    for (int r = 0; r < R; ++r) low[r] = load(weighted + r * stride + d), high[r] = load(weighted + r * stride + d + 16);
    for (int k = 0; k < num_keys; ++k) {
      fetch<Block>(next, k * stride + d);
      const F32 v0 = Block::at(values, k * stride + d), v1 = Block::at(values, k * stride + d + 16);
      for (int r = 0; r < R; ++r) {
        const F32 w = splat(weights[32 * r + k]);
        low[r] = fma(w, v0, low[r]);
        high[r] = fma(w, v1, high[r]);
      }
    }
    for (int r = 0; r < R; ++r) store(weighted + r * stride + d, low[r]), store(weighted + r * stride + d + 16, high[r]);
  }
  if (d == task.padded_dim) return;
  F32 acc[R];
  for (int r = 0; r < R; ++r) acc[r] = load(weighted + r * stride + d);
  for (int k = 0; k < num_keys; ++k) {
    const F32 v = Block::at(values, k * stride + d);
    for (int r = 0; r < R; ++r) acc[r] = fma(splat(weights[32 * r + k]), v, acc[r]);
  }
  for (int r = 0; r < R; ++r) store(weighted + r * stride + d, acc[r]);
}

// Calls `body<R>(first_row)` over the rows in groups of at most 8.
template <class Body> void by_groups(int num_rows, const Body& body) {
  int r = 0;
  for (; r + 8 <= num_rows; r += 8) body.template operator()<8>(r);
  switch (num_rows - r) {
    case 7: return body.template operator()<7>(r);
    case 6: return body.template operator()<6>(r);
    case 5: return body.template operator()<5>(r);
    case 4: return body.template operator()<4>(r);
    case 3: return body.template operator()<3>(r);
    case 2: return body.template operator()<2>(r);
    case 1: return body.template operator()<1>(r);
  }
}

// Turns a row's 32 scores into weights and updates its running maximum; returns what earlier sums must be scaled by.
float weigh_row(const AttentionTask& task, int row, int first_key, float* scores) {
  alignas(64) static const float lanes[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                              16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  const int position = task.first_position + row / task.heads_per_group;
  const int end = position + 1 < task.end_key ? position + 1 : task.end_key;
  const int begin = task.window > 0 && position - task.window + 1 > 0 ? position - task.window + 1 : 0;
  F32 low = load(scores), high = load(scores + 16);
  if (task.softcap > 0) {
    low = softcap(low, task.softcap);
    high = softcap(high, task.softcap);
  }
  const bool is_partial = first_key + 32 > end || first_key < begin;
  F32 low_mask, high_mask;
  if (is_partial) {
    // 1 where begin <= key < end, else 0; by arithmetic that is exact on whole numbers.
    const auto mask = [&](const float* lane) {
      const F32 key = add(load(lane), splat((float)first_key));
      const F32 inside = minimum(add(sub(key, splat((float)begin)), splat(1.0f)), sub(splat((float)end), key));
      return minimum(maximum(inside, splat(0.0f)), splat(1.0f));
    };
    low_mask = mask(lanes), high_mask = mask(lanes + 16);
    // The second operand of `minimum` wins over NaN, which memory that holds no key may read as.
    const auto bound = [](F32 m) { return add(mul(m, splat(2e30f)), splat(no_score)); };
    low = minimum(low, bound(low_mask));
    high = minimum(high, bound(high_mask));
  }
  const float before = task.largest[row], now = largest(maximum(low, high));
  const float peak = now > before ? now : before;
  low = exponential(sub(low, splat(peak)));
  high = exponential(sub(high, splat(peak)));
  if (is_partial) low = mul(low, low_mask), high = mul(high, high_mask);
  store(scores, low);
  store(scores + 16, high);
  float factor = 1.0f;  // what e^0 is, to the last bit
  if (peak > before) {
    float powers[16];
    store(powers, exponential(splat(before - peak)));
    factor = powers[0];
  }
  task.largest[row] = peak;
  task.sums[row] = task.sums[row] * factor + sum(add(low, high));
  return factor;
}

// Multiplies the 32 numbers of each row by those of the keys or values that they are for.
void scale_rows(int num_rows, const float* scales, float* scores) {
  const F32 low = load(scales), high = load(scales + 16);
  for (int r = 0; r < num_rows; ++r, scores += 32) {
    store(scores, mul(load(scores), low));
    store(scores + 16, mul(load(scores + 16), high));
  }
}

// The first `count` numbers of a block in single precision.
void widen(CacheFormat format, const uint8_t* from, int count, float* to) {
  by_format(format, [&]<class Block>() {
    for (int i = 0; i < count; i += 16) store(to + i, Block::at(from, i));
  });
}

void attend(const AttentionTask& task) {
  float* keys32 = task.scratch;
  float* values32 = keys32 + cache_block_tokens * task.padded_dim;
  float* scores = values32 + cache_block_tokens * task.padded_dim;
  // Enough rows to pay for a copy of the block in single precision.
  const bool widens = task.format != CacheFormat::Float32 && task.num_rows > 8;
  const bool is_scaled = task.format == CacheFormat::Int8;
  const CacheFormat format = widens ? CacheFormat::Float32 : task.format;
  const int last_position = task.first_position + (task.num_rows - 1) / task.heads_per_group;
  const int end = last_position + 1 < task.end_key ? last_position + 1 : task.end_key;
  for (int first = task.first_key, block = 0; first < end; first += cache_block_tokens, ++block) {
    const int next = first + cache_block_tokens < end ? block + 1 : block;
    if (task.window > 0 && first + cache_block_tokens <= task.first_position - task.window + 1) continue;
    const int num_keys = end - first < cache_block_tokens ? end - first : cache_block_tokens;
    if (widens) {
      widen(task.format, task.keys[block], cache_block_tokens * task.head_dim, keys32);
      widen(task.format, task.values[block], num_keys * task.padded_dim, values32);
    }
    const uint8_t *keys = task.keys[block], *next_keys = task.keys[next];
    const uint8_t *values = task.values[block], *next_values = task.values[next];
    if (widens) {
      keys = next_keys = (const uint8_t*)keys32;
      values = next_values = (const uint8_t*)values32;
    }
    by_format(format, [&]<class Block>() {
      by_groups(task.num_rows, [&]<int R>(int r) {
        score_rows<Block, R>(task, task.queries + (size_t)r * task.padded_dim, keys, next_keys, scores + 32 * r);
      });
    });
    if (is_scaled) scale_rows(task.num_rows, cache_scales(task.keys[block], task.padded_dim), scores);
    for (int r = 0; r < task.num_rows; ++r) {
      const float factor = weigh_row(task, r, first, scores + 32 * r);
      if (factor == 1.0f) continue;
      float* weighted = task.weighted + (size_t)r * task.padded_dim;
      for (int d = 0; d < task.padded_dim; d += 16) store(weighted + d, mul(load(weighted + d), splat(factor)));
    }
    if (is_scaled) scale_rows(task.num_rows, cache_scales(task.values[block], task.padded_dim), scores);
    by_format(format, [&]<class Block>() {
      by_groups(task.num_rows, [&]<int R>(int r) {
        add_values<Block, R>(task, scores + 32 * r, values, next_values, num_keys, task.weighted + (size_t)r * task.padded_dim);
      });
    });
  }
}

void merge_attention(int num_rows, int padded_dim, float* largest, float* sums, float* weighted, const float* largest2,
                     const float* sums2, const float* weighted2) {
  for (int r = 0; r < num_rows; ++r) {
    const float peak = largest[r] > largest2[r] ? largest[r] : largest2[r];
    float first[16], second[16];
    store(first, exponential(splat(largest[r] - peak)));
    store(second, exponential(splat(largest2[r] - peak)));
    largest[r] = peak;
    sums[r] = sums[r] * first[0] + sums2[r] * second[0];
    const F32 a = splat(first[0]), b = splat(second[0]);
    for (int d = 0; d < padded_dim; d += 16) {
      const size_t i = (size_t)r * padded_dim + d;
      store(weighted + i, fma(load(weighted2 + i), b, mul(load(weighted + i), a)));
    }
  }
}
