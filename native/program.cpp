#include "program.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

namespace kaiwa {
namespace {

// A split of attention along the keys begins at multiples of this, whatever is computed together, so that a token's
// result never depends on the batch it is in.
constexpr int split_tokens = 512;

// Few enough rows that every thread prepares them for itself rather than waiting for the others.
constexpr int private_rows = 2;

constexpr int counters_per_step = 3;
constexpr int max_head_dim = 1024;

int padded(int n) { return (n + 15) / 16 * 16; }

// Tokens of one piece of attention over a prompt: about 32 rows of queries.
int tokens_per_item(int heads_per_kv) {
  int tokens = 1;
  while (2 * tokens * heads_per_kv <= 32) tokens *= 2;
  return tokens;
}

}  // namespace

Slot::Slot(int width, int max_rows) : width(width), padded((width + 15) / 16 * 16) {
  const size_t bytes = sizeof(float) * padded * max_rows;
  memory.reset(std::calloc(bytes + 64, 1));
  if (!memory) throw std::bad_alloc();
  void* start = memory.get();
  size_t space = bytes + 64;
  data = static_cast<float*>(std::align(64, bytes, start, space));
}

Program::Program(std::shared_ptr<ThreadPool> pool, const Kernels* kernels, std::shared_ptr<KvCache> cache, int max_rows)
    : pool_(std::move(pool)), kernels_(kernels), cache_(std::move(cache)), max_rows_(max_rows) {
  padded_dim_ = cache_->padded_dim();
  scratch_.resize(pool_->num_threads());
  for (ThreadScratch& scratch : scratch_) {
    scratch.panels.resize((size_t)2 * max_rows * panel_rows);
    scratch.attention.resize((size_t)max_attention_rows * (3 * padded_dim_ + 4) + attention_scratch(padded_dim_) + 2 * padded_dim_);
  }
}

int Program::add_rope(std::vector<float> frequencies, float magnitude) {
  for (size_t i = 0; i < ropes_.size(); ++i)
    if (ropes_[i].frequencies == frequencies && ropes_[i].magnitude == magnitude) return (int)i;
  std::vector<float> table(2 * frequencies.size() * max_rows_);
  ropes_.push_back({std::move(frequencies), magnitude, std::move(table)});
  return (int)ropes_.size() - 1;
}

int Program::add_slot(int width) {
  slots_.emplace_back(width, max_rows_);
  return (int)slots_.size() - 1;
}

void Program::add_step(Step step) {
  if (std::holds_alternative<Select>(step)) select_step_ = (int)steps_.size();
  if (const auto* a = std::get_if<Attention>(&step)) {
    const int per_kv = a->num_heads / a->num_kv_heads;
    if (num_kv_heads_ && (num_kv_heads_ != a->num_kv_heads || heads_per_kv_ != per_kv))
      throw std::invalid_argument("all layers of a program must have the same number of attention heads");
    if (a->head_dim > max_head_dim) throw std::invalid_argument("a head has more than 1,024 numbers");
    if (per_kv > max_attention_rows) throw std::invalid_argument("more than 64 query heads share one key-value head");
    num_kv_heads_ = a->num_kv_heads;
    heads_per_kv_ = per_kv;
  }
  if (const auto* linear = std::get_if<Linear>(&step)) reserve_inputs(slots_[linear->in].width, linear->is_precise);
  if (const auto* gated = std::get_if<Gated>(&step)) reserve_inputs(slots_[gated->in].width, false);
  steps_.push_back(std::move(step));
  counters_ = std::make_unique<Counter[]>(steps_.size() * counters_per_step);
  profile_.assign(steps_.size(), 0.0);
}

void Program::reserve_inputs(int columns, bool precise) {
  shared_.fit(precise ? 2 * max_rows_ : max_rows_, columns);
  for (ThreadScratch& scratch : scratch_) scratch.staging.fit(2 * private_rows, columns);
}

void Program::set_profiling(bool on) {
  is_profiling_ = on;
  profile_.assign(steps_.size(), 0.0);
}

void Program::check(const Batch& batch) const {
  const int num_tokens = (int)batch.token_ids.size();
  if (num_tokens == 0 || num_tokens > max_rows_)
    throw std::invalid_argument("a batch has 1 to " + std::to_string(max_rows_) + " tokens, not " + std::to_string(num_tokens));
  int rows = 0;
  for (const BatchSlice& slice : batch.slices) {
    if (slice.start < 0 || slice.count <= 0) throw std::invalid_argument("a slice is empty or starts before position 0");
    if ((size_t)(slice.start + slice.count) > slice.blocks.size() * cache_block_tokens)
      throw std::invalid_argument("a slice has fewer cache blocks than tokens");
    for (int block : slice.blocks)
      if (block < 0 || block >= cache_->num_blocks()) throw std::invalid_argument("there is no cache block " + std::to_string(block));
    rows += slice.count;
  }
  if (rows != num_tokens) throw std::invalid_argument("slices and tokens of a batch do not match");
  for (int r : batch.logit_rows)
    if (r < 0 || r >= num_tokens) throw std::invalid_argument("there is no row " + std::to_string(r) + " in the batch");
  const auto& table = std::get<Embed>(steps_.front()).table;
  for (int id : batch.token_ids)
    if (id < 0 || id >= table->rows()) throw std::invalid_argument("there is no token " + std::to_string(id));
}

void Program::run(const Batch& batch) {
  check(batch);
  batch_ = &batch;
  num_rows_ = (int)batch.token_ids.size();
  positions_.clear();
  first_rows_.clear();
  for (const BatchSlice& slice : batch.slices) {
    first_rows_.push_back((int)positions_.size());
    for (int i = 0; i < slice.count; ++i) positions_.push_back(slice.start + i);
  }
  plan_attention(batch);
  replay(batch);
  batch_ = nullptr;
}

void Program::run_rows(int rows, int slot, const float* values) {
  num_rows_ = rows;
  positions_.clear();
  for (int r = 0; r < rows; ++r) memcpy(row(slot, r), values + (size_t)r * slots_[slot].width, sizeof(float) * slots_[slot].width);
  replay({});
}

void Program::replay(const Batch& batch) {
  for (size_t i = 0; i < steps_.size() * counters_per_step; ++i) counters_[i].next.store(0, std::memory_order_relaxed);
  pool_->run([&](int thread) {
    fill_ropes(thread);
    for (int i = 0; i < (int)steps_.size(); ++i) {
      const bool is_selected = select_step_ >= 0 && i >= select_step_;
      const int rows = is_selected ? (int)batch.logit_rows.size() : num_rows_;
      if (rows == 0) break;
      Counter* counters = &counters_[i * counters_per_step];
      if (is_profiling_ && thread == 0) {
        const auto begin = std::chrono::steady_clock::now();
        std::visit([&](const auto& step) { run_step(step, rows, thread, counters); }, steps_[i]);
        profile_[i] += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      } else {
        std::visit([&](const auto& step) { run_step(step, rows, thread, counters); }, steps_[i]);
      }
    }
  });
}

// ---- inputs ---------------------------------------------------------------------------------------------------------

void Program::Staging::fit(int rows, int columns) {
  const size_t size = (size_t)rows * padded(columns), blocks = (size_t)rows * (columns / block_columns);
  if (floats.size() < size) floats.resize(size), quants.resize(size);
  if (scales.size() < blocks) scales.resize(blocks), offsets.resize(blocks), sums.resize(blocks), negative_sums.resize(2 * blocks);
}

Inputs Program::Staging::inputs(int columns, int row) {
  const size_t block = (size_t)row * (columns / block_columns);
  return {floats.data() + (size_t)row * padded(columns), (size_t)padded(columns), columns,
          quants.data() + (size_t)row * columns, scales.data() + block, offsets.data() + block, sums.data() + block,
          negative_sums.data() + 2 * block};
}

void Program::stage_row(Staging& to, int row, const float* x, const Vector& norm, float eps, int columns, bool quants,
                        int residual_row) const {
  float* floats = to.floats.data() + (size_t)row * padded(columns);
  if (norm) {
    // The padding of x and of the weight is zero, so it adds nothing; the mean is over `columns`.
    kernels_->rms_norm(x, norm->data(), eps, columns, floats);
    x = floats;
  }
  if (!quants) return;
  float* residual = residual_row < 0 ? nullptr : to.floats.data() + (size_t)residual_row * padded(columns);
  kernels_->quantize(x, to.inputs(columns, row), residual);
  if (residual) kernels_->quantize(residual, to.inputs(columns, residual_row), nullptr);
}

Inputs Program::stage(int in, const Vector& norm, float eps, bool floats, bool quants, bool precise, int rows, int thread,
                      Counter& counter) {
  const int columns = slots_[in].width;
  const bool is_private = rows <= private_rows;
  Staging& to = is_private ? scratch_[thread].staging : shared_;
  const auto stage_one = [&](int r) {
    stage_row(to, r, row(in, r), norm, eps, columns, quants, precise ? rows + r : -1);
  };
  if (is_private) {
    for (int r = 0; r < rows; ++r) stage_one(r);
  } else if (norm || quants) {
    for (int r; (r = counter.next.fetch_add(4, std::memory_order_relaxed)) < rows;)
      for (int i = r; i < std::min(r + 4, rows); ++i) stage_one(i);
    pool_->barrier();
  }
  Inputs inputs = to.inputs(columns, 0);
  if (floats && !norm) inputs.floats = row(in, 0), inputs.stride = slots_[in].padded;
  return inputs;
}

void Program::fill_ropes(int thread) {
  for (Rope& rope : ropes_) {
    const size_t pairs = rope.frequencies.size();
    for (int r = thread; r < num_rows_; r += pool_->num_threads()) {
      float* cos = rope.table.data() + 2 * pairs * r;
      for (size_t i = 0; i < pairs; ++i) {
        const double angle = (float)positions_[r] * rope.frequencies[i];
        cos[i] = (float)std::cos(angle) * rope.magnitude;
        cos[pairs + i] = (float)std::sin(angle) * rope.magnitude;
      }
    }
  }
}

// ---- rows -----------------------------------------------------------------------------------------------------------

void Program::run_step(const Embed& step, int rows, int thread, Counter* counters) {
  (void)thread;
  for (int r; (r = counters[0].next.fetch_add(1, std::memory_order_relaxed)) < rows;) {
    float* out = row(step.out, r);
    step.table->unpack_row(batch_->token_ids[r], out);
    if (step.scale != 1.0f)
      for (int i = 0; i < step.table->columns(); ++i) out[i] *= step.scale;
  }
  pool_->barrier();
}

void Program::run_step(const Select& step, int rows, int thread, Counter*) {
  if (thread == 0)
    for (int r = 0; r < rows; ++r)
      memcpy(row(step.out, r), row(step.in, batch_->logit_rows[r]), sizeof(float) * slots_[step.in].padded);
  pool_->barrier();
}

void Program::run_step(const Norm& step, int rows, int, Counter* counters) {
  for (int r; (r = counters[0].next.fetch_add(1, std::memory_order_relaxed)) < rows;)
    kernels_->rms_norm(row(step.in, r), step.weight->data(), step.eps, slots_[step.in].width, row(step.out, r));
  pool_->barrier();
}

void Program::run_step(const Add& step, int rows, int, Counter* counters) {
  for (int r; (r = counters[0].next.fetch_add(1, std::memory_order_relaxed)) < rows;)
    kernels_->add(row(step.in, r), slots_[step.in].padded, row(step.out, r));
  pool_->barrier();
}

// ---- matrix products ------------------------------------------------------------------------------------------------

void Program::run_step(const Linear& step, int rows, int thread, Counter* counters) {
  bool floats = false, quants = false;
  int panels = 0;
  for (const auto& part : step.parts) {
    (is_float(part.weights->format()) ? floats : quants) = true;
    panels += part.weights->num_panels();
  }
  const Inputs in = stage(step.in, step.norm, step.eps, floats, quants, step.is_precise, rows, thread, counters[0]);
  const int chunk = std::max(1, panels / (8 * pool_->num_threads()));
  for (int p; (p = counters[1].next.fetch_add(chunk, std::memory_order_relaxed)) < panels;) {
    const int end = std::min(p + chunk, panels);
    int first = 0;
    for (const auto& part : step.parts) {
      const Matrix& weights = *part.weights;
      const float* bias = part.bias ? part.bias->data() : nullptr;
      for (int i = std::max(p, first); i < std::min(end, first + weights.num_panels()); ++i) {
        const Outputs out{row(part.out, 0) + (i - first) * panel_rows, (size_t)slots_[part.out].padded, bias, step.accumulate};
        const auto multiply = kernels_->panel[(int)weights.format()];
        if (!step.is_precise || is_float(weights.format())) {
          multiply(weights, i - first, in, rows, out);
          continue;
        }
        float* both = scratch_[thread].panels.data();
        multiply(weights, i - first, in, 2 * rows, {both, panel_rows, nullptr, false});
        for (int r = 0; r < rows; ++r) {
          float* sum = both + r * panel_rows;
          kernels_->add(both + (rows + r) * panel_rows, panel_rows, sum);
          if (bias) kernels_->add(bias + (i - first) * panel_rows, panel_rows, sum);
          float* to = out.out + r * out.stride;
          if (step.accumulate) kernels_->add(sum, panel_rows, to);
          else memcpy(to, sum, sizeof(float) * panel_rows);
        }
      }
      first += weights.num_panels();
    }
  }
  pool_->barrier();
}

void Program::run_step(const Gated& step, int rows, int thread, Counter* counters) {
  const Format formats[] = {step.gate->format(), step.up->format()};
  const bool floats = is_float(formats[0]) || is_float(formats[1]), quants = !is_float(formats[0]) || !is_float(formats[1]);
  const Inputs in = stage(step.in, step.norm, step.eps, floats, quants, false, rows, thread, counters[0]);
  float* gates = scratch_[thread].panels.data();
  float* ups = gates + (size_t)rows * panel_rows;
  const int panels = step.gate->num_panels(), chunk = std::max(1, panels / (8 * pool_->num_threads()));
  for (int p; (p = counters[1].next.fetch_add(chunk, std::memory_order_relaxed)) < panels;) {
    for (int i = p; i < std::min(p + chunk, panels); ++i) {
      kernels_->panel[(int)formats[0]](*step.gate, i, in, rows, {gates, panel_rows, nullptr, false});
      kernels_->panel[(int)formats[1]](*step.up, i, in, rows, {ups, panel_rows, nullptr, false});
      for (int r = 0; r < rows; ++r)
        kernels_->gate(step.activation, gates + r * panel_rows, ups + r * panel_rows, panel_rows,
                       row(step.out, r) + i * panel_rows);
    }
  }
  pool_->barrier();
}

// ---- attention ------------------------------------------------------------------------------------------------------

void Program::plan_attention(const Batch& batch) {
  items_.clear();
  split_slices_.clear();
  first_partials_.assign(batch.slices.size(), -1);
  num_splits_.assign(batch.slices.size(), 1);
  stores_first_ = false;
  int num_partials = 0;
  for (int s = 0; s < (int)batch.slices.size(); ++s) {
    const BatchSlice& slice = batch.slices[s];
    const int end = slice.start + slice.count, splits = (end + split_tokens - 1) / split_tokens;
    if (slice.count == 1 && splits > 1) {
      split_slices_.push_back(s);
      first_partials_[s] = num_partials;
      num_splits_[s] = splits;
      // The newest keys come first: their piece stores the token's own key before anything else waits.
      for (int split = splits - 1; split >= 0; --split)
        for (int head = 0; head < num_kv_heads_; ++head)
          items_.push_back({s, head, 0, 1, split * split_tokens, std::min(end, (split + 1) * split_tokens),
                            num_partials + head * splits + split});
      num_partials += num_kv_heads_ * splits;
      continue;
    }
    if (slice.count > 1) stores_first_ = true;
    const int tokens = tokens_per_item(heads_per_kv_);
    for (int t = (slice.count - 1) / tokens * tokens; t >= 0; t -= tokens)  // the longest pieces first
      for (int head = 0; head < num_kv_heads_; ++head)
        items_.push_back({s, head, t, std::min(tokens, slice.count - t), 0, 0, -1});
  }
  partials_.resize((size_t)num_partials * heads_per_kv_ * (2 + padded_dim_));
}

// A split's result: heads_per_kv largest scores, as many sums, then weighted values.
float* Program::partial(int index, int rows) { return partials_.data() + (size_t)index * rows * (2 + padded_dim_); }

void Program::run_step(const Attention& step, int, int thread, Counter* counters) {
  ThreadScratch& scratch = scratch_[thread];
  if (stores_first_) {
    const int count = num_rows_ * num_kv_heads_;
    for (int i; (i = counters[0].next.fetch_add(8, std::memory_order_relaxed)) < count;)
      for (int j = i; j < std::min(i + 8, count); ++j) {
        const int r = j / num_kv_heads_;
        const int slice = (int)(std::upper_bound(first_rows_.begin(), first_rows_.end(), r) - first_rows_.begin()) - 1;
        store_keys_and_values(step, slice, r - first_rows_[slice], j % num_kv_heads_, scratch);
      }
    pool_->barrier();
  }
  for (int i; (i = counters[1].next.fetch_add(1, std::memory_order_relaxed)) < (int)items_.size();)
    attend(step, items_[i], scratch);
  pool_->barrier();
  if (split_slices_.empty()) return;
  const int count = (int)split_slices_.size() * num_kv_heads_;
  for (int i; (i = counters[2].next.fetch_add(1, std::memory_order_relaxed)) < count;)
    combine(step, split_slices_[i / num_kv_heads_], i % num_kv_heads_, scratch);
  pool_->barrier();
}

void Program::store_keys_and_values(const Attention& step, int slice, int token, int kv_head, ThreadScratch& scratch) {
  const int r = first_rows_[slice] + token, position = positions_[r], dim = step.head_dim;
  const int block = batch_->slices[slice].blocks[position / cache_block_tokens], at = position % cache_block_tokens;
  float* head = scratch.attention.data() + scratch.attention.size() - 2 * padded_dim_;
  uint16_t halves[max_head_dim];
  std::fill(head, head + 2 * padded_dim_, 0.0f);
  memcpy(head, row(step.keys, r) + (size_t)kv_head * dim, sizeof(float) * dim);
  if (step.key_norm) kernels_->rms_norm(head, step.key_norm->data(), step.norm_eps, dim, head);
  if (step.rope >= 0) {
    const Rope& rope = ropes_[step.rope];
    const int pairs = (int)rope.frequencies.size();
    const float* cos = rope.table.data() + (size_t)2 * pairs * r;
    rotate(head, pairs, step.interleaved, cos, cos + pairs);
  }
  float* value = head + padded_dim_;
  memcpy(value, row(step.values, r) + (size_t)kv_head * dim, sizeof(float) * dim);
  uint8_t *keys = cache_->keys(block, step.layer, kv_head), *values = cache_->values(block, step.layer, kv_head);
  if (cache_->is_single()) {
    for (int d = 0; d < dim; ++d) reinterpret_cast<float*>(keys)[d * cache_block_tokens + at] = head[d];
    memcpy(reinterpret_cast<float*>(values) + (size_t)at * padded_dim_, value, sizeof(float) * padded_dim_);
  } else {
    kernels_->store_half(head, padded_dim_, halves);
    for (int d = 0; d < dim; ++d) reinterpret_cast<uint16_t*>(keys)[d * cache_block_tokens + at] = halves[d];
    kernels_->store_half(value, padded_dim_, reinterpret_cast<uint16_t*>(values) + (size_t)at * padded_dim_);
  }
}

void Program::attend(const Attention& step, const AttentionItem& item, ThreadScratch& scratch) {
  const BatchSlice& slice = batch_->slices[item.slice];
  const int per_kv = heads_per_kv_, num_rows = item.num_tokens * per_kv, dim = step.head_dim;
  const int first_row = first_rows_[item.slice] + item.first_token;
  const int first_position = slice.start + item.first_token, last = first_position + item.num_tokens - 1;
  const bool is_whole = item.partial < 0;
  // A single token's key is stored by whoever computes the piece that it belongs to.
  if (!stores_first_ && (is_whole || item.end_key == last + 1))
    store_keys_and_values(step, item.slice, item.first_token, item.kv_head, scratch);

  float* queries = scratch.attention.data();
  const size_t rows = max_attention_rows;
  float *weighted = queries + rows * padded_dim_, *partial_weighted = weighted + rows * padded_dim_;
  float *largest = partial_weighted + rows * padded_dim_, *sums = largest + rows;
  float *partial_largest = sums + rows, *partial_sums = partial_largest + rows, *kernel_scratch = partial_sums + rows;
  for (int r = 0; r < num_rows; ++r) {
    const int batch_row = first_row + r / per_kv, head_index = item.kv_head * per_kv + r % per_kv;
    float* q = queries + (size_t)r * padded_dim_;
    std::fill(q + dim, q + padded_dim_, 0.0f);
    memcpy(q, row(step.queries, batch_row) + (size_t)head_index * dim, sizeof(float) * dim);
    if (step.query_norm) kernels_->rms_norm(q, step.query_norm->data(), step.norm_eps, dim, q);
    if (step.rope >= 0) {
      const Rope& rope = ropes_[step.rope];
      const int pairs = (int)rope.frequencies.size();
      const float* cos = rope.table.data() + (size_t)2 * pairs * batch_row;
      rotate(q, pairs, step.interleaved, cos, cos + pairs);
    }
    for (int d = 0; d < dim; ++d) q[d] *= step.scale;
  }

  std::fill(largest, largest + num_rows, -1e30f);
  std::fill(sums, sums + num_rows, 0.0f);
  std::fill(weighted, weighted + (size_t)num_rows * padded_dim_, 0.0f);
  const int lowest = step.window > 0 ? std::max(0, first_position - step.window + 1) : 0;
  const int begin = is_whole ? lowest / split_tokens * split_tokens : item.first_key;
  const int end = is_whole ? last + 1 : item.end_key;
  for (int from = begin; from < end; from += split_tokens) {
    const int to = std::min(end, from + split_tokens);
    scratch.keys.clear();
    scratch.values.clear();
    for (int b = from / cache_block_tokens; b * cache_block_tokens < to; ++b) {
      scratch.keys.push_back(cache_->keys(slice.blocks[b], step.layer, item.kv_head));
      scratch.values.push_back(cache_->values(slice.blocks[b], step.layer, item.kv_head));
    }
    std::fill(partial_largest, partial_largest + num_rows, -1e30f);
    std::fill(partial_sums, partial_sums + num_rows, 0.0f);
    std::fill(partial_weighted, partial_weighted + (size_t)num_rows * padded_dim_, 0.0f);
    kernels_->attend({num_rows, per_kv, dim, padded_dim_, first_position, step.window, step.softcap, queries, from, to,
                      scratch.keys.data(), scratch.values.data(), cache_->is_single(), partial_largest, partial_sums, partial_weighted,
                      kernel_scratch});
    if (is_whole)
      kernels_->merge_attention(num_rows, padded_dim_, largest, sums, weighted, partial_largest, partial_sums, partial_weighted);
  }
  if (is_whole) {
    write_attention(step, first_row, item.kv_head, num_rows, sums, weighted);
  } else {
    float* result = partial(item.partial, per_kv);
    memcpy(result, partial_largest, sizeof(float) * per_kv);
    memcpy(result + per_kv, partial_sums, sizeof(float) * per_kv);
    memcpy(result + 2 * per_kv, partial_weighted, sizeof(float) * per_kv * padded_dim_);
  }
}

void Program::combine(const Attention& step, int slice, int kv_head, ThreadScratch& scratch) {
  const int per_kv = heads_per_kv_;
  float* weighted = scratch.attention.data();
  float *largest = weighted + (size_t)per_kv * padded_dim_, *sums = largest + per_kv;
  std::fill(largest, largest + per_kv, -1e30f);
  std::fill(sums, sums + per_kv, 0.0f);
  std::fill(weighted, weighted + (size_t)per_kv * padded_dim_, 0.0f);
  for (int i = 0; i < num_splits_[slice]; ++i) {
    const float* part = partial(first_partials_[slice] + kv_head * num_splits_[slice] + i, per_kv);
    kernels_->merge_attention(per_kv, padded_dim_, largest, sums, weighted, part, part + per_kv, part + 2 * per_kv);
  }
  write_attention(step, first_rows_[slice], kv_head, per_kv, sums, weighted);
}

void Program::write_attention(const Attention& step, int first_row, int kv_head, int num_rows, const float* sums,
                              const float* weighted) {
  for (int r = 0; r < num_rows; ++r) {
    float* out = row(step.out, first_row + r / heads_per_kv_) + (size_t)(kv_head * heads_per_kv_ + r % heads_per_kv_) * step.head_dim;
    const float* w = weighted + (size_t)r * padded_dim_;
    for (int d = 0; d < step.head_dim; ++d) out[d] = w[d] / sums[r];
  }
}

}  // namespace kaiwa
