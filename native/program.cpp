#include "program.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <typeinfo>

#if defined(__GNUG__)
#include <cxxabi.h>
#endif

namespace kaiwa {
namespace {

// "Linear" of the type kaiwa::Linear, whatever the compiler calls it.
std::string class_name(const std::type_info& type) {
#if defined(__GNUG__)
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  const std::string name = plain ? plain.get() : type.name();
#else
  const std::string name = type.name();
#endif
  const size_t end_of_scope = name.rfind(':');
  return end_of_scope == std::string::npos ? name : name.substr(end_of_scope + 1);
}

}  // namespace

// Rows a large power of two apart would all fall to the same few places of a processor's cache.
static int apart(int width) {
  const int padded = (width + 15) / 16 * 16;
  return padded % 1024 == 0 ? padded + 16 : padded;
}

Slot::Slot(int width, int max_rows) : width(width), padded(apart(width)) {
  const size_t bytes = sizeof(float) * padded * max_rows;
  memory.reset(std::calloc(bytes + 64, 1));
  if (!memory) throw std::bad_alloc();
  void* start = memory.get();
  size_t space = bytes + 64;
  data = static_cast<float*>(std::align(64, bytes, start, space));
}

Program::Program(std::shared_ptr<ThreadPool> pool, const Kernels* kernels, std::shared_ptr<KvCache> cache,
                 std::shared_ptr<StateCache> states, int max_rows)
    : pool_(std::move(pool)), cache_(std::move(cache)), states_(std::move(states)), max_rows_(max_rows),
      inputs_(pool_->num_threads()) {
  context_.kernels = kernels;
  context_.pool = pool_.get();
  context_.cache = cache_.get();
  context_.states = states_.get();
  context_.slots = &slots_;
  context_.ropes = &ropes_;
  context_.inputs = &inputs_;
}

int Program::add_rope(std::vector<float> frequencies, std::vector<float> long_frequencies, float magnitude) {
  if (long_frequencies.size() != frequencies.size()) throw std::invalid_argument("a rope's two sets differ in size");
  for (size_t i = 0; i < ropes_.size(); ++i)
    if (ropes_[i].frequencies == frequencies && ropes_[i].long_frequencies == long_frequencies &&
        ropes_[i].magnitude == magnitude)
      return (int)i;
  std::vector<float> table(2 * frequencies.size() * max_rows_);
  ropes_.push_back({std::move(frequencies), std::move(long_frequencies), magnitude, std::move(table)});
  return (int)ropes_.size() - 1;
}

int Program::add_slot(int width) {
  slots_.emplace_back(width, max_rows_);
  return (int)slots_.size() - 1;
}

void Program::add_step(std::unique_ptr<Step> step) {
  step->prepare(context_, max_rows_);
  steps_.push_back(std::move(step));
  profile_.assign(steps_.size(), 0.0);
}

void Program::add_attention(int queries, int keys, int values, int out, AttentionOptions options) {
  const int per_kv = options.num_heads / std::max(1, options.num_kv_heads), padded_dim = (options.head_dim + 15) / 16 * 16;
  const auto known = std::find_if(attention_plans_.begin(), attention_plans_.end(), [&](const auto& plan) {
    return plan->num_kv_heads == options.num_kv_heads && plan->heads_per_kv == per_kv && plan->padded_dim == padded_dim;
  });
  const bool is_new = known == attention_plans_.end();
  const auto plan = is_new ? std::make_shared<AttentionPlan>(options.num_kv_heads, per_kv, padded_dim) : *known;
  if (is_new) attention_plans_.push_back(plan);
  add_step(std::make_unique<Attention>(queries, keys, values, out, std::move(options), plan, is_new));
}

void Program::set_profiling(bool on) {
  is_profiling_ = on;
  profile_.assign(steps_.size(), 0.0);
}

std::vector<std::pair<std::string, double>> Program::profile() const {
  std::vector<std::pair<std::string, double>> kinds;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = *steps_[i];
    kinds.emplace_back(class_name(typeid(step)), profile_[i]);
  }
  return kinds;
}

void Program::check(const Batch& batch) const {
  const int num_tokens = (int)batch.token_ids.size();
  if (num_tokens == 0 || num_tokens > max_rows_)
    throw std::invalid_argument("a batch has 1 to " + std::to_string(max_rows_) + " tokens, not " + std::to_string(num_tokens));
  int rows = 0;
  if (!std::is_sorted(batch.slices.begin(), batch.slices.end(),
                      [](const BatchSlice& a, const BatchSlice& b) { return a.is_prompt < b.is_prompt; }))
    throw std::invalid_argument("the slices of prompts come after those of answers");
  for (const BatchSlice& slice : batch.slices) {
    if (slice.start < 0 || slice.count <= 0) throw std::invalid_argument("a slice is empty or starts before position 0");
    if (&slice.blocks->cache() != cache_.get()) throw std::invalid_argument("a slice's blocks are of another cache");
    if (slice.start + slice.count > slice.blocks->size() * cache_block_tokens)
      throw std::invalid_argument("a slice has fewer cache blocks than tokens");
    if (states_->num_layers() > 0 && (slice.state < 0 || slice.state >= states_->num_slots()))
      throw std::invalid_argument("there is no state " + std::to_string(slice.state));
    if (slice.checkpoint >= states_->num_slots() || slice.checkpoint_tokens < 0 || slice.checkpoint_tokens > slice.count)
      throw std::invalid_argument("a checkpoint lies outside of its slice or of the states");
    rows += slice.count;
  }
  if (rows != num_tokens) throw std::invalid_argument("slices and tokens of a batch do not match");
  for (int r : batch.logit_rows)
    if (r < 0 || r >= num_tokens) throw std::invalid_argument("there is no row " + std::to_string(r) + " in the batch");
}

void Program::run(const Batch& batch) {
  check(batch);
  context_.num_tokens = (int)batch.token_ids.size();
  context_.positions.clear();
  context_.is_long.clear();
  context_.first_rows.clear();
  context_.first_prompt_row = 0;
  for (const BatchSlice& slice : batch.slices) {
    context_.first_rows.push_back((int)context_.positions.size());
    if (!slice.is_prompt) context_.first_prompt_row += slice.count;
    for (int i = 0; i < slice.count; ++i) context_.positions.push_back(slice.start + i);
    context_.is_long.insert(context_.is_long.end(), slice.count, slice.is_long);
  }
  replay(batch);
}

void Program::run_rows(int rows, int slot, const float* values, bool is_prompt) {
  context_.num_tokens = rows;
  context_.first_prompt_row = is_prompt ? 0 : rows;
  context_.positions.assign(rows, 0);
  context_.is_long.assign(rows, false);
  for (int r = 0; r < rows; ++r)
    memcpy(slots_[slot].row(r), values + (size_t)r * slots_[slot].width, sizeof(float) * slots_[slot].width);
  replay({});
}

void Program::replay(const Batch& batch) {
  context_.batch = &batch;
  for (const auto& step : steps_) {
    step->reset();
    step->begin(context_);
  }
  pool_->run([&](int thread) {
    Context context = context_;
    context.rows = context.num_tokens;
    fill_ropes(thread);
    for (size_t i = 0; i < steps_.size(); ++i) {
      const bool selects = steps_[i]->selects();
      if (selects) {
        const std::vector<int>& wanted = batch.logit_rows;
        context.rows = (int)wanted.size();
        context.first_prompt_row =
            (int)(std::lower_bound(wanted.begin(), wanted.end(), context.first_prompt_row) - wanted.begin());
      }
      if (context.rows == 0) break;
      if (!is_profiling_ || thread != 0) {
        steps_[i]->run(context, thread);
      } else {
        const auto begin = std::chrono::steady_clock::now();
        steps_[i]->run(context, thread);
        profile_[i] += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      }
      if (selects && batch.is_headless) break;
    }
  });
}

std::vector<Drawn> Program::draw(int slot, const std::vector<Draw>& draws) {
  const Slot& logits = slots_.at(slot);
  return draw_all({logits.data, (size_t)logits.width, (size_t)logits.padded, max_rows_}, draws, *context_.kernels, *pool_);
}

std::vector<double> Program::add_up(int slot, const PaddedRow& norm, float eps, int first, int end) const {
  const Slot& rows = slots_.at(slot);
  if (first < 0 || end > max_rows_) throw std::invalid_argument("a program holds no such rows");
  std::vector<double> total(rows.width);
  std::vector<float> normed(rows.padded);
  for (int r = first; r < end; ++r) {
    context_.kernels->rms_norm(rows.row(r), norm.data(), eps, rows.width, normed.data());
    for (int i = 0; i < rows.width; ++i) total[i] += normed[i];
  }
  return total;
}

void Program::fill_ropes(int thread) {
  for (Rope& rope : ropes_) {
    for (int r = thread; r < context_.num_tokens; r += pool_->num_threads()) {
      const std::vector<float>& frequencies = context_.is_long[r] ? rope.long_frequencies : rope.frequencies;
      float *cos = rope.table.data() + (size_t)2 * rope.num_pairs() * r, *sin = cos + rope.num_pairs();
      for (int i = 0; i < rope.num_pairs(); ++i) {
        const double angle = (float)context_.positions[r] * frequencies[i];
        cos[i] = (float)std::cos(angle) * rope.magnitude;
        sin[i] = (float)std::sin(angle) * rope.magnitude;
      }
    }
  }
}

}  // namespace kaiwa
