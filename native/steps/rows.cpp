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

void Norm::run(const Context& context, int) {
  counters_[0].share(context.rows, 1, [&](int r) {
    context.kernels->rms_norm(context.row(in_, r), weight_->data(), eps_, context.slot(in_).width, context.row(out_, r));
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
