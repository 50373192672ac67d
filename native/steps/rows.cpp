#include "rows.h"

#include <cstring>
#include <stdexcept>
#include <string>

namespace kaiwa {

void Embed::begin(const Context& context) {
  for (int id : context.batch->token_ids)
    if (id < 0 || id >= table_->rows()) throw std::invalid_argument("there is no token " + std::to_string(id));
}

void Embed::run(const Context& context, int) {
  counters_[0].share(context.rows, 1, [&](int r) {
    float* out = context.row(out_, r);
    table_->unpack_row(context.batch->token_ids[r], out);
    if (scale_ != 1.0f)
      for (int i = 0; i < table_->columns(); ++i) out[i] *= scale_;
  });
  context.pool->barrier();
}

void Select::run(const Context& context, int thread) {
  if (thread == 0)
    for (int r = 0; r < context.rows; ++r)
      memcpy(context.row(out_, r), context.row(in_, context.batch->logit_rows[r]), sizeof(float) * context.slot(in_).padded);
  context.pool->barrier();
}

void NormGroups::prepare(const Context& context, int) {
  if (group_ % 16 != 0 || context.slot(slot_).width % group_ != 0)
    throw std::invalid_argument("a row cannot be normed in groups of " + std::to_string(group_));
}

void NormGroups::run(const Context& context, int) {
  counters_[0].share(context.rows, 1, [&](int r) {
    float* x = context.row(slot_, r);
    for (int i = 0; i < context.slot(slot_).width; i += group_)
      context.kernels->rms_norm(x + i, weight_->data(), eps_, group_, x + i);
  });
  context.pool->barrier();
}

void Gate::prepare(const Context& context, int) {
  const int width = context.slot(gate_).width;
  if (width % 16 != 0 || first_ < 0 || first_ + width > context.slot(in_).width)
    throw std::invalid_argument("a gate of " + std::to_string(width) + " numbers does not fit what it gates");
}

void Gate::run(const Context& context, int) {
  counters_[0].share(context.rows, 1, [&](int r) {
    float* gate = context.row(gate_, r);
    context.kernels->gate(activation_, gate, context.row(in_, r) + first_, context.slot(gate_).width, gate);
  });
  context.pool->barrier();
}

void Regroup::prepare(const Context& context, int) {
  int total = 0;
  for (const Part& part : parts_) {
    const int end = (num_groups_ - 1) * part.stride + part.first + part.width;
    if (part.stride < 0 || part.first < 0 || part.width < 0 || end > context.slot(part.slot).width)
      throw std::invalid_argument("a part of a group lies outside of the row that it is taken from");
    total += part.width;
  }
  if (total > width_ || num_groups_ * width_ != context.slot(out_).width)
    throw std::invalid_argument("groups of " + std::to_string(width_) + " numbers do not fit their parts or their row");
}

void Regroup::run(const Context& context, int) {
  counters_[0].share(context.rows, 1, [&](int r) {
    float* out = context.row(out_, r);
    for (int group = 0; group < num_groups_; ++group) {
      float* end = out + width_;
      for (const Part& part : parts_)
        out = std::copy_n(context.row(part.slot, r) + (size_t)group * part.stride + part.first, part.width, out);
      std::fill(out, end, 0.0f);
      out = end;
    }
  });
  context.pool->barrier();
}

void Scale::run(const Context& context, int) {
  counters_[0].share(context.rows, 1, [&](int r) {
    float* x = context.row(slot_, r);
    for (int i = 0; i < context.slot(slot_).width; ++i) x[i] *= factor_;
  });
  context.pool->barrier();
}

void Add::run(const Context& context, int) {
  counters_[0].share(context.rows, 1, [&](int r) {
    float* x = context.row(in_, r);
    if (norm_) context.kernels->rms_norm(x, norm_->data(), eps_, context.slot(in_).width, x);
    context.kernels->add(x, context.slot(in_).padded, context.row(out_, r));
  });
  context.pool->barrier();
}

void Softcap::run(const Context& context, int) {
  constexpr int chunk = 1024;
  const int padded = context.slot(slot_).padded, chunks = (padded + chunk - 1) / chunk;
  counters_[0].share(context.rows * chunks, 4, [&](int i) {
    const int first = i % chunks * chunk;
    context.kernels->softcap(context.row(slot_, i / chunks) + first, std::min(chunk, padded - first), cap_);
  });
  context.pool->barrier();
}

}  // namespace kaiwa
