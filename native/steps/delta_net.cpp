#include "delta_net.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace kaiwa {
namespace {

// What the length of a query or key is taken to be at least, squared.
constexpr float least_square = 1e-6f;

float softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }

}  // namespace

DeltaNet::DeltaNet(Slots slots, DeltaNetOptions options) : slots_(slots), options_(std::move(options)) {
  const DeltaNetOptions& o = options_;
  if (o.num_key_heads < 1 || o.num_value_heads % o.num_key_heads != 0)
    throw std::invalid_argument("the value heads cannot be shared out among the key heads");
  if (o.key_dim % 16 != 0 || o.value_dim % 16 != 0) throw std::invalid_argument("a head's numbers are no multiple of 16");
  if (o.convolution->rows() != num_channels() || (int)o.decays.size() != o.num_value_heads ||
      (int)o.biases.size() != o.num_value_heads)
    throw std::invalid_argument("the weights do not fit the heads");
  const int num_taps = o.convolution->columns();
  std::vector<float> row(num_taps);
  taps_.resize((size_t)num_taps * num_channels());
  for (int c = 0; c < num_channels(); ++c) {
    o.convolution->unpack_row(c, row.data());
    for (int i = 0; i < num_taps; ++i) taps_[(size_t)i * num_channels() + c] = row[i];
  }
  zeros_.assign(num_channels(), 0.0f);
  ones_.assign(std::max(o.key_dim, o.value_dim), 1.0f);
  // As RMS norms: x / |x| is x / rms(x) / sqrt(dim), and a query is divided by sqrt(dim) once more.
  key_norm_.values.assign(o.key_dim, 1 / std::sqrt((float)o.key_dim));
  query_norm_.values.assign(o.key_dim, 1 / (float)o.key_dim);
}

size_t DeltaNet::state_size(const DeltaNetOptions& o) {
  return (size_t)o.convolution->rows() * (o.convolution->columns() - 1) + (size_t)o.num_value_heads * o.key_dim * o.value_dim;
}

void DeltaNet::prepare(const Context& context, int max_rows) {
  if (options_.layer < 0 || options_.layer >= context.states->num_layers() ||
      context.states->size(options_.layer) < state_size(options_))
    throw std::invalid_argument("the states have no room for this layer");
  scratch_.resize(context.num_threads());
  for (Scratch& s : scratch_) {
    for (auto* values : {&s.queries, &s.keys}) values->resize((size_t)max_rows * options_.key_dim);
    for (auto* values : {&s.values, &s.found}) values->resize((size_t)max_rows * options_.value_dim);
    for (auto* values : {&s.decays, &s.rates, &s.products}) values->resize(max_rows);
  }
}

void DeltaNet::run(const Context& context, int thread) {
  const int heads = options_.num_key_heads;
  counters_[0].share((int)context.batch->slices.size() * heads, 1, [&](int i) {
    run_key_head(context, i / heads, i % heads, scratch_[thread]);
  });
  context.pool->barrier();
}

// The channels of a token of the slice; of one before it, where the number is negative.
const float* DeltaNet::input(const Context& context, int slice, int token) const {
  const BatchSlice& part = context.batch->slices[slice];
  if (token >= 0) return context.row(slots_.channels, context.first_rows[slice] + token);
  if (part.start == 0) return zeros_.data();
  return context.states->state(part.state, options_.layer) + (size_t)(num_past() + token) * num_channels();
}

// silu(convolution) of `count` channels for all tokens of the slice.
void DeltaNet::convolve(const Context& context, int slice, int first, int count, float* out) const {
  for (int t = 0; t < context.batch->slices[slice].count; ++t, out += count) {
    std::fill_n(out, count, 0.0f);
    for (int i = 0; i <= num_past(); ++i) {
      const float* x = input(context, slice, t - num_past() + i) + first;
      const float* taps = taps_.data() + (size_t)i * num_channels() + first;
      for (int c = 0; c < count; ++c) out[c] += taps[c] * x[c];
    }
    context.kernels->gate(Activation::Silu, out, ones_.data(), count, out);
  }
}

// Keeps the channels of the last tokens before token `end` of the slice.
void DeltaNet::remember(const Context& context, int slice, int end, int first, int count, float* state) const {
  // Upwards, as what a short slice leaves over of the old state moves down.
  for (int i = 0; i < num_past(); ++i)
    memmove(state + (size_t)i * num_channels() + first, input(context, slice, end - num_past() + i) + first, sizeof(float) * count);
}

// A key head with its value heads: they share no channel and no state with any other.
void DeltaNet::run_key_head(const Context& context, int slice, int key_head, Scratch& s) const {
  const BatchSlice& part = context.batch->slices[slice];
  const int dim = options_.key_dim, per_key = options_.num_value_heads / options_.num_key_heads;
  const int query_channel = key_head * dim, key_channel = (options_.num_key_heads + key_head) * dim;
  convolve(context, slice, query_channel, dim, s.queries.data());
  convolve(context, slice, key_channel, dim, s.keys.data());
  for (int t = 0; t < part.count; ++t) {
    float *query = s.queries.data() + (size_t)t * dim, *key = s.keys.data() + (size_t)t * dim;
    context.kernels->rms_norm(query, query_norm_.data(), least_square / (float)dim, dim, query);
    context.kernels->rms_norm(key, key_norm_.data(), least_square / (float)dim, dim, key);
    s.products[t] = 0;
    for (int d = 0; d < dim; ++d) s.products[t] += query[d] * key[d];
  }
  for (int i = 0; i < per_key; ++i) {
    const int head = options_.is_tiled ? i * options_.num_key_heads + key_head : key_head * per_key + i;
    run_value_head(context, slice, head, s);
  }
  const auto remember_all = [&](int end, int slot) {
    float* state = context.states->state(slot, options_.layer);
    remember(context, slice, end, query_channel, dim, state);
    remember(context, slice, end, key_channel, dim, state);
  };
  if (part.checkpoint >= 0) remember_all(part.checkpoint_tokens, part.checkpoint);
  remember_all(part.count, part.state);
}

void DeltaNet::run_value_head(const Context& context, int slice, int head, Scratch& s) const {
  const BatchSlice& part = context.batch->slices[slice];
  const int first_row = context.first_rows[slice], dim = options_.value_dim;
  const int channel = 2 * options_.num_key_heads * options_.key_dim + head * dim;
  float* state = context.states->state(part.state, options_.layer);
  convolve(context, slice, channel, dim, s.values.data());
  for (int t = 0; t < part.count; ++t) {
    const float alpha = context.row(slots_.alpha, first_row + t)[head], beta = context.row(slots_.beta, first_row + t)[head];
    s.decays[t] = std::exp(options_.decays[head] * softplus(alpha + options_.biases[head]));
    s.rates[t] = 1 / (1 + std::exp(-beta));
  }

  const size_t size = (size_t)options_.key_dim * dim;
  float* matrix = recurrent(state, head);
  if (part.start == 0) std::fill_n(matrix, size, 0.0f);
  const auto advance = [&](int begin, int end) {
    for (int d = 0; d < dim; d += 16) {
      DeltaRuleTask task{};
      task.num_tokens = end - begin, task.key_dim = options_.key_dim, task.stride = dim;
      task.queries = s.queries.data() + (size_t)begin * options_.key_dim;
      task.keys = s.keys.data() + (size_t)begin * options_.key_dim;
      task.products = s.products.data() + begin, task.decays = s.decays.data() + begin, task.rates = s.rates.data() + begin;
      task.values = s.values.data() + (size_t)begin * dim + d, task.out = s.found.data() + (size_t)begin * dim + d;
      task.state = matrix + (size_t)d * options_.key_dim;
      context.kernels->delta_rule(task);
    }
  };
  if (part.checkpoint >= 0) {
    advance(0, part.checkpoint_tokens);
    float* copy = context.states->state(part.checkpoint, options_.layer);
    memcpy(recurrent(copy, head), matrix, sizeof(float) * size);
    remember(context, slice, part.checkpoint_tokens, channel, dim, copy);
  }
  advance(part.checkpoint >= 0 ? part.checkpoint_tokens : 0, part.count);
  remember(context, slice, part.count, channel, dim, state);

  for (int t = 0; t < part.count; ++t) {
    float* found = s.found.data() + (size_t)t * dim;
    context.kernels->rms_norm(found, options_.norm->data(), options_.eps, dim, found);
    context.kernels->gate(Activation::Silu, context.row(slots_.gate, first_row + t) + (size_t)head * dim, found, dim,
                          context.row(slots_.out, first_row + t) + (size_t)head * dim);
  }
}

}  // namespace kaiwa
