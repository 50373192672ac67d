#include "attention.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace kaiwa {
namespace {

// A split of attention along the keys begins at multiples of this, whatever is computed together, so that a token's
// result never depends on the batch it is in.
constexpr int split_tokens = max_attention_keys;

constexpr float no_score = -1e30f;

// Tokens of one piece of attention over several: so many rows of queries, or about that.
int tokens_per_piece(int heads_per_kv, int rows) {
  int tokens = 1;
  while (2 * tokens * heads_per_kv <= rows) tokens *= 2;
  return tokens;
}

// Whether a tier computes the attention of these rows in bfloat16; a cache in single precision is there for exact numbers.
bool takes_tiles(const Context& context, const BatchSlice& slice) {
  return slice.is_prompt && context.kernels->attend_tiles && context.cache->format() != CacheFormat::Float32;
}

void clear(int num_rows, int padded_dim, std::vector<float>& largest, std::vector<float>& sums, std::vector<float>& weighted) {
  std::fill_n(largest.begin(), num_rows, no_score);
  std::fill_n(sums.begin(), num_rows, 0.0f);
  std::fill_n(weighted.begin(), (size_t)num_rows * padded_dim, 0.0f);
}

}  // namespace

void AttentionPlan::make(const Context& context) {
  const std::vector<BatchSlice>& slices = context.batch->slices;
  pieces.clear();
  split_slices.clear();
  first_partials.assign(slices.size(), -1);
  num_splits.assign(slices.size(), 1);
  stored.clear();
  int num_partials = 0;
  for (int s = 0; s < (int)slices.size(); ++s) {
    const BatchSlice& slice = slices[s];
    const int tokens = tokens_per_piece(heads_per_kv, takes_tiles(context, slice) ? max_attention_rows : 32);
    const int end = slice.start + slice.count, splits = (end + split_tokens - 1) / split_tokens;
    if (slice.count == 1 && splits > 1) {
      split_slices.push_back(s);
      first_partials[s] = num_partials;
      num_splits[s] = splits;
      for (int split = 0; split < splits; ++split)
        for (int head = 0; head < num_kv_heads; ++head)
          pieces.push_back({s, head, 0, 1, split * split_tokens, std::min(end, (split + 1) * split_tokens),
                            num_partials + head * splits + split});
      num_partials += num_kv_heads * splits;
      continue;
    }
    for (int t = (slice.count - 1) / tokens * tokens; t >= 0; t -= tokens)  // the longest pieces first
      for (int head = 0; head < num_kv_heads; ++head)
        pieces.push_back({s, head, t, std::min(tokens, slice.count - t), 0, end, -1});
  }
  partials_.resize((size_t)num_partials * heads_per_kv * (2 + padded_dim));
  if (std::all_of(slices.begin(), slices.end(), [](const BatchSlice& slice) { return slice.count == 1; })) return;
  for (int s = 0; s < (int)slices.size(); ++s)
    for (int first = 0, next; first < slices[s].count; first = next) {
      const int in_block = (slices[s].start + first) % cache_block_tokens;
      next = std::min(slices[s].count, first + cache_block_tokens - in_block);
      for (int head = 0; head < num_kv_heads; ++head) stored.push_back({s, head, first, next - first});
    }
}

Attention::Attention(int queries, int keys, int values, int out, AttentionOptions options, std::shared_ptr<AttentionPlan> plan,
                     bool makes_plan)
    : queries_(queries), keys_(keys), values_(values), out_(out), options_(std::move(options)), plan_(std::move(plan)),
      makes_plan_(makes_plan) {
  const int per_kv = options_.num_heads / options_.num_kv_heads;
  if (options_.num_heads % options_.num_kv_heads != 0)
    throw std::invalid_argument("the query heads cannot be shared out among the key-value heads");
  if (options_.head_dim > max_head_dim) throw std::invalid_argument("a head has more than 1,024 numbers");
  if (per_kv > max_attention_rows) throw std::invalid_argument("more than 64 query heads share one key-value head");
  if (options_.temperature != 0 && options_.temperature_length <= 0)
    throw std::invalid_argument("the temperature of attention grows with a length above 0");
}

void Attention::prepare(const Context& context, int) {
  if (options_.layer < 0 || options_.layer >= context.cache->num_layers())
    throw std::invalid_argument("the cache has no such layer");
  const KvCache::Shape& shape = context.cache->shape(options_.layer);
  if (shape.num_heads != options_.num_kv_heads || shape.head_dim != options_.head_dim)
    throw std::invalid_argument("a layer of the cache has other heads than the attention that uses it");
  padded_dim_ = context.cache->padded_dim(options_.layer);
  scratch_ = std::make_shared<std::vector<Scratch>>(context.num_threads());
  const size_t rows = max_attention_rows, matrix = rows * padded_dim_;
  for (Scratch& s : *scratch_) {
    for (auto* values : {&s.queries, &s.weighted, &s.partial_weighted}) values->resize(matrix);
    for (auto* values : {&s.largest, &s.sums, &s.partial_largest, &s.partial_sums}) values->resize(rows);
    s.kernel.resize(attention_scratch(padded_dim_));
    s.tiles.resize(context.kernels->num_attention_tiles);
    s.key.resize(padded_dim_), s.value.resize(padded_dim_);
  }
}

void Attention::begin(const Context& context) {
  if (makes_plan_) plan_->make(context);
}

void Attention::run(const Context& context, int thread) {
  Scratch& scratch = (*scratch_)[thread];
  const int heads = plan_->num_kv_heads;
  if (!plan_->stored.empty() && keys_ >= 0) {
    counters_[0].share((int)plan_->stored.size(), 1, [&](int i) {
      const AttentionPlan::Stored& some = plan_->stored[i];
      for (int t = 0; t < some.num_tokens; ++t) store(context, some.slice, some.first_token + t, some.kv_head, scratch);
    });
    context.pool->barrier();
  }
  counters_[1].share((int)plan_->pieces.size(), 1, [&](int i) { attend(context, plan_->pieces[i], scratch); });
  context.pool->barrier();
  if (plan_->split_slices.empty()) return;
  counters_[2].share((int)plan_->split_slices.size() * heads, 1, [&](int i) {
    combine(context, plan_->split_slices[i / heads], i % heads, scratch);
  });
  context.pool->barrier();
}

// One head of one row, normalized and rotated, padded with zeros.
void Attention::load_head(const Context& context, const float* from, int row, const Vector& norm, float* head) const {
  std::fill(head + options_.head_dim, head + padded_dim_, 0.0f);
  memcpy(head, from, sizeof(float) * options_.head_dim);
  if (norm) context.kernels->rms_norm(head, norm->data(), options_.norm_eps, options_.head_dim, head);
  if (options_.rope < 0) return;
  const Rope& rope = (*context.ropes)[options_.rope];
  rotate(head, rope.num_pairs(), options_.interleaved, rope.cos(row), rope.sin(row));
}

float Attention::scale_at(int position) const {
  if (options_.temperature == 0) return options_.scale;
  return options_.scale * (1 + options_.temperature * std::log1p((float)(position / options_.temperature_length)));
}

void Attention::store(const Context& context, int slice, int token, int kv_head, Scratch& scratch) const {
  const KvCache& cache = *context.cache;
  const int row = context.first_rows[slice] + token, position = context.positions[row], dim = options_.head_dim;
  const int block = (*context.batch->slices[slice].blocks)[position / cache_block_tokens], at = position % cache_block_tokens;
  float *key = scratch.key.data(), *value = scratch.value.data();
  load_head(context, context.row(keys_, row) + (size_t)kv_head * dim, row, options_.key_norm, key);
  std::fill(value + dim, value + padded_dim_, 0.0f);
  memcpy(value, context.row(values_, row) + (size_t)kv_head * dim, sizeof(float) * dim);
  if (options_.value_norm) context.kernels->rms_norm(value, options_.value_norm->data(), options_.norm_eps, dim, value);
  uint8_t *keys = cache.keys(block, options_.layer, kv_head), *values = cache.values(block, options_.layer, kv_head);
  switch (cache.format()) {
    case CacheFormat::Float32: return put(key, value, at, reinterpret_cast<float*>(keys), reinterpret_cast<float*>(values));
    case CacheFormat::Float16: {
      uint16_t halves[2 * max_head_dim];
      context.kernels->store_half(key, padded_dim_, halves);
      context.kernels->store_half(value, padded_dim_, halves + padded_dim_);
      return put(halves, halves + padded_dim_, at, reinterpret_cast<uint16_t*>(keys), reinterpret_cast<uint16_t*>(values));
    }
    case CacheFormat::Int8: {
      int8_t bytes[2 * max_head_dim];
      cache_scales(keys, padded_dim_)[at] = context.kernels->store_bytes(key, padded_dim_, bytes);
      cache_scales(values, padded_dim_)[at] = context.kernels->store_bytes(value, padded_dim_, bytes + padded_dim_);
      return put(bytes, bytes + padded_dim_, at, reinterpret_cast<int8_t*>(keys), reinterpret_cast<int8_t*>(values));
    }
  }
}

// One token's numbers in a block: a column of the keys and a row of the values.
template <class Number>
void Attention::put(const Number* key, const Number* value, int at, Number* keys, Number* values) const {
  for (int d = 0; d < options_.head_dim; ++d) keys[d * cache_block_tokens + at] = key[d];
  memcpy(values + (size_t)at * padded_dim_, value, sizeof(Number) * padded_dim_);
}

void Attention::attend(const Context& context, const AttentionPlan::Piece& piece, Scratch& s) const {
  const BatchSlice& slice = context.batch->slices[piece.slice];
  const KvCache& cache = *context.cache;
  const int per_kv = plan_->heads_per_kv, num_rows = piece.num_tokens * per_kv;
  const int first_row = context.first_rows[piece.slice] + piece.first_token;
  const int first_position = slice.start + piece.first_token, last_position = first_position + piece.num_tokens - 1;
  const bool is_split = piece.partial >= 0;
  // A single token's key is stored by whoever computes the piece that it belongs to.
  if (keys_ >= 0 && plan_->stored.empty() && piece.end_key == last_position + 1)
    store(context, piece.slice, piece.first_token, piece.kv_head, s);

  for (int r = 0; r < num_rows; ++r) {
    const int row = first_row + r / per_kv, head = piece.kv_head * per_kv + r % per_kv;
    float* query = s.queries.data() + (size_t)r * padded_dim_;
    load_head(context, context.row(queries_, row) + (size_t)head * query_stride(), row, options_.query_norm, query);
    const float scale = scale_at(context.positions[row]);
    for (int d = 0; d < options_.head_dim; ++d) query[d] *= scale;
  }

  clear(num_rows, padded_dim_, s.largest, s.sums, s.weighted);
  const int lowest = options_.window > 0 ? std::max(0, first_position - options_.window + 1) : 0;
  const int begin = is_split ? piece.first_key : lowest / split_tokens * split_tokens;
  const int end = is_split ? piece.end_key : last_position + 1;
  for (int from = begin; from < end; from += split_tokens) {
    const int to = std::min(end, from + split_tokens);
    s.keys.clear(), s.values.clear();
    for (int b = from / cache_block_tokens; b * cache_block_tokens < to; ++b) {
      s.keys.push_back(cache.keys((*slice.blocks)[b], options_.layer, piece.kv_head));
      s.values.push_back(cache.values((*slice.blocks)[b], options_.layer, piece.kv_head));
    }
    clear(num_rows, padded_dim_, s.partial_largest, s.partial_sums, s.partial_weighted);
    AttentionTask task{};
    task.num_rows = num_rows, task.heads_per_group = per_kv;
    task.head_dim = options_.head_dim, task.padded_dim = padded_dim_;
    task.first_position = first_position, task.window = options_.window, task.softcap = options_.softcap;
    task.queries = s.queries.data(), task.first_key = from, task.end_key = to;
    task.keys = s.keys.data(), task.values = s.values.data(), task.format = cache.format();
    task.largest = s.partial_largest.data(), task.sums = s.partial_sums.data();
    task.weighted = s.partial_weighted.data(), task.scratch = s.kernel.data(), task.tiles = s.tiles.data();
    (takes_tiles(context, slice) ? context.kernels->attend_tiles : context.kernels->attend)(task);
    if (!is_split)
      context.kernels->merge_attention(num_rows, padded_dim_, s.largest.data(), s.sums.data(), s.weighted.data(),
                                       s.partial_largest.data(), s.partial_sums.data(), s.partial_weighted.data());
  }
  if (!is_split) return write(context, first_row, piece.kv_head, num_rows, s);
  float* result = plan_->partial(piece.partial);
  result = std::copy_n(s.partial_largest.data(), per_kv, result);
  result = std::copy_n(s.partial_sums.data(), per_kv, result);
  std::copy_n(s.partial_weighted.data(), (size_t)per_kv * padded_dim_, result);
}

void Attention::combine(const Context& context, int slice, int kv_head, Scratch& s) const {
  const int per_kv = plan_->heads_per_kv, splits = plan_->num_splits[slice];
  clear(per_kv, padded_dim_, s.largest, s.sums, s.weighted);
  for (int i = 0; i < splits; ++i) {
    const float* part = plan_->partial(plan_->first_partials[slice] + kv_head * splits + i);
    context.kernels->merge_attention(per_kv, padded_dim_, s.largest.data(), s.sums.data(), s.weighted.data(), part,
                                     part + per_kv, part + 2 * per_kv);
  }
  write(context, context.first_rows[slice], kv_head, per_kv, s);
}

void Attention::write(const Context& context, int first_row, int kv_head, int num_rows, Scratch& s) const {
  const int per_kv = plan_->heads_per_kv, dim = options_.head_dim;
  for (int r = 0; r < num_rows; ++r) {
    const int row = first_row + r / per_kv, head = kv_head * per_kv + r % per_kv;
    float* weighted = s.weighted.data() + (size_t)r * padded_dim_;
    float sum = s.sums[r];
    if (options_.sinks) sum += std::exp(options_.sinks->values[head] - s.largest[r]);
    for (int d = 0; d < dim; ++d) weighted[d] /= sum;
    if (options_.is_gated) {
      float* gate = s.key.data();
      memcpy(gate, context.row(queries_, row) + (size_t)head * query_stride() + dim, sizeof(float) * dim);
      context.kernels->gate(Activation::Sigmoid, gate, weighted, padded_dim_, weighted);
    }
    memcpy(context.row(out_, row) + (size_t)head * dim, weighted, sizeof(float) * dim);
  }
}

}  // namespace kaiwa
