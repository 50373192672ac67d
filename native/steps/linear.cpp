#include "linear.h"

#include <cstring>

namespace kaiwa {
namespace {

// Panels that a thread takes at once: small enough that the last one keeps nobody waiting.
int chunk_of(int num_panels, int num_threads) { return std::max(1, num_panels / (8 * num_threads)); }

}  // namespace

Linear::Linear(int in, Vector norm, float eps, std::vector<Part> parts, bool accumulate, bool is_precise)
    : in_(in), norm_(std::move(norm)), eps_(eps), parts_(std::move(parts)), accumulate_(accumulate) {
  for (const Part& part : parts_) {
    kind_.add(*part.weights);
    num_panels_ += part.weights->num_panels();
  }
  kind_.is_precise = is_precise;
}

void Linear::prepare(const Context& context, int max_rows) {
  kind_.tiles = std::all_of(parts_.begin(), parts_.end(),
                            [&](const Part& part) { return takes_tiles(*context.kernels, *part.weights); });
  context.inputs->reserve(max_rows, context.slot(in_).width, kind_);
  if (kind_.is_precise)
    both_.assign(context.num_threads(), std::vector<float>((size_t)2 * max_rows * panel_rows));
}

void Linear::run(const Context& context, int thread) {
  const Inputs in = context.inputs->stage(context, in_, norm_, eps_, kind_, thread, counters_[0]);
  const int num_untiled = kind_.num_untiled(context);
  if (num_untiled > 0)
    counters_[1].share(num_panels_, chunk_of(num_panels_, context.num_threads()), [&](int panel) {
      for (const Part& part : parts_) {
        if (panel < part.weights->num_panels()) return run_panel(context, part, panel, num_untiled, in, thread);
        panel -= part.weights->num_panels();
      }
    });
  if (num_untiled < context.rows) run_prompts(context);
  context.pool->barrier();
}

void Linear::run_panel(const Context& context, const Part& part, int panel, int num_rows, const Inputs& in, int thread) {
  const Matrix& weights = *part.weights;
  const Kernels& kernels = *context.kernels;
  const Slot& slot = context.slot(part.out);
  const float* bias = part.bias ? part.bias->data() + panel * panel_rows : nullptr;
  const Outputs out{slot.data + panel * panel_rows, (size_t)slot.padded, bias, accumulate_};
  const auto multiply = kernels.panel[(int)weights.format()];
  if (!kind_.is_precise || is_float(weights.format())) return multiply(weights, panel, in, num_rows, out);
  float* both = both_[thread].data();
  multiply(weights, panel, in, 2 * num_rows, {both, panel_rows, nullptr, false});
  for (int r = 0; r < num_rows; ++r) {
    float* sum = both + r * panel_rows;
    kernels.add(both + (num_rows + r) * panel_rows, panel_rows, sum);
    if (bias) kernels.add(bias, panel_rows, sum);
    if (accumulate_) kernels.add(sum, panel_rows, out.out + r * out.stride);
    else memcpy(out.out + r * out.stride, sum, sizeof(float) * panel_rows);
  }
}

void Linear::run_prompts(const Context& context) {
  const int first_row = context.first_prompt_row, num_rows = context.rows - first_row;
  const TiledInputs in = context.inputs->tiled(context.slot(in_).width, kind_);
  int num_chunks = 0;
  for (const Part& part : parts_) num_chunks += TiledChunks(part.weights->num_panels(), context.num_threads()).count();
  counters_[2].share(num_chunks, 1, [&](int chunk) {
    for (const Part& part : parts_) {
      const Matrix& weights = *part.weights;
      const TiledChunks chunks(weights.num_panels(), context.num_threads());
      if (chunk >= chunks.count()) {
        chunk -= chunks.count();
        continue;
      }
      const int first = chunks.first_panel(chunk);
      const Slot& slot = context.slot(part.out);
      const float* bias = part.bias ? part.bias->data() + first * panel_rows : nullptr;
      return context.kernels->tiled_panels[(int)weights.format()](
          weights, first, chunks.num_panels(chunk), in, num_rows,
          {slot.row(first_row) + first * panel_rows, (size_t)slot.padded, bias, accumulate_});
    }
  });
}

Gated::Gated(int in, Vector norm, float eps, MatrixPtr gate, MatrixPtr up, Activation activation, int out)
    : in_(in), norm_(std::move(norm)), eps_(eps), gate_(std::move(gate)), up_(std::move(up)), activation_(activation), out_(out) {
  kind_.add(*gate_);
  kind_.add(*up_);
}

void Gated::prepare(const Context& context, int max_rows) {
  kind_.tiles = takes_tiles(*context.kernels, *gate_) && takes_tiles(*context.kernels, *up_);
  context.inputs->reserve(max_rows, context.slot(in_).width, kind_);
  products_.assign(context.num_threads(), std::vector<float>((size_t)2 * max_rows * panel_rows));
}

void Gated::run(const Context& context, int thread) {
  const Inputs in = context.inputs->stage(context, in_, norm_, eps_, kind_, thread, counters_[0]);
  const Kernels& kernels = *context.kernels;
  const int rows = kind_.num_untiled(context), panels = gate_->num_panels();
  float* gates = products_[thread].data();
  float* ups = gates + (size_t)rows * panel_rows;
  if (rows > 0)
    counters_[1].share(panels, chunk_of(panels, context.num_threads()), [&](int panel) {
      kernels.panel[(int)gate_->format()](*gate_, panel, in, rows, {gates, panel_rows, nullptr, false});
      kernels.panel[(int)up_->format()](*up_, panel, in, rows, {ups, panel_rows, nullptr, false});
      for (int r = 0; r < rows; ++r)
        kernels.gate(activation_, gates + r * panel_rows, ups + r * panel_rows, panel_rows,
                     context.row(out_, r) + panel * panel_rows);
    });
  if (rows < context.rows) run_prompts(context, thread);
  context.pool->barrier();
}

void Gated::run_prompts(const Context& context, int thread) {
  const Kernels& kernels = *context.kernels;
  const int first_row = context.first_prompt_row, num_rows = context.rows - first_row;
  const TiledInputs in = context.inputs->tiled(context.slot(in_).width, kind_);
  const TiledChunks chunks(gate_->num_panels(), context.num_threads());
  counters_[2].share(chunks.count(), 1, [&](int chunk) {
    const int first = chunks.first_panel(chunk), num_panels = chunks.num_panels(chunk), width = num_panels * panel_rows;
    float* gates = context.inputs->products(thread);
    float* ups = gates + (size_t)num_rows * width;
    const auto multiply = [&](const Matrix& weights, float* out) {
      kernels.tiled_panels[(int)weights.format()](weights, first, num_panels, in, num_rows, {out, (size_t)width, nullptr, false});
    };
    multiply(*gate_, gates);
    multiply(*up_, ups);
    for (int r = 0; r < num_rows; ++r)
      kernels.gate(activation_, gates + (size_t)r * width, ups + (size_t)r * width, width,
                   context.row(out_, first_row + r) + first * panel_rows);
  });
}

}  // namespace kaiwa
