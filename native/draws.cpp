#include "draws.h"

#include <exception>
#include <stdexcept>

namespace kaiwa {
namespace {

Drawn draw_one(const LogitRows& logits, const Draw& draw, const Kernels& kernels) {
  Drawn drawn;
  for (size_t i = 0; i <= draw.guesses.size(); ++i) {
    const std::span<const float> row = logits.row(draw.first_row + (int)i);
    const int32_t token_id = draw.sampler->sample(row, draw.allowed);
    drawn.token_ids.push_back(token_id);
    if (draw.num_logprobs >= 0) drawn.logprobs.push_back(log_probabilities(row, token_id, draw.num_logprobs, kernels));
    if (i < draw.guesses.size() && token_id != draw.guesses[i]) break;
  }
  return drawn;
}

}  // namespace

std::vector<Drawn> draw_all(const LogitRows& logits, const std::vector<Draw>& draws, const Kernels& kernels, ThreadPool& pool) {
  for (const Draw& draw : draws)
    if (draw.first_row < 0 || draw.first_row + (int)draw.guesses.size() >= logits.num_rows)
      throw std::invalid_argument("there are fewer rows of logits than draws");
  std::vector<Drawn> drawn(draws.size());
  std::vector<std::exception_ptr> errors(draws.size());
  const auto draw = [&](int i) {
    try {
      drawn[i] = draw_one(logits, draws[i], kernels);
    } catch (const std::runtime_error&) {
      drawn[i] = {};
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  if (draws.size() == 1) draw(0);  // not worth waking anybody
  else pool.for_each((int)draws.size(), draw);
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return drawn;
}

}  // namespace kaiwa
