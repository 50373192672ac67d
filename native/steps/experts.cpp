#include "experts.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace kaiwa {
namespace {

using Choice = ExpertScratch::Choice;
using Entry = ExpertScratch::Entry;
using Group = ExpertScratch::Group;
using Thread = ExpertScratch::Thread;

// Panels that a thread takes at once.
int chunk_of(int num_panels, int num_threads) { return std::max(1, num_panels / (16 * num_threads)); }

constexpr float infinity = std::numeric_limits<float>::infinity();

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

template <class Items> void fit(Items& items, size_t size) {
  if (items.size() < size) items.resize(size);
}

}  // namespace

Experts::Experts(int in, Vector norm, float eps, int router, int shared_gate, std::vector<Expert> experts, Routing routing,
                 Activation activation, int out, bool accumulate, std::shared_ptr<ExpertScratch> scratch)
    : in_(in), norm_(std::move(norm)), eps_(eps), router_(router), shared_gate_(shared_gate), experts_(std::move(experts)),
      routing_(std::move(routing)), activation_(activation), out_(out), accumulate_(accumulate), scratch_(std::move(scratch)) {
  for (const Expert& expert : experts_) {
    const int width = expert.gate->rows();
    if (expert.up->rows() != width || expert.down->columns() != width || expert.up->columns() != expert.gate->columns() ||
        expert.down->rows() != experts_[0].down->rows())
      throw std::invalid_argument("the matrices of an expert do not fit each other");
    in_kind_.add(*expert.gate), in_kind_.add(*expert.up), hidden_kind_.add(*expert.down);
    widest_ = std::max(widest_, width);
  }
}

void Experts::prepare(const Context& context, int max_rows) {
  num_routed_ = context.slot(router_).width;
  if (routing_.num_chosen < 1 || routing_.num_chosen > num_routed_ || num_routed_ > (int)experts_.size())
    throw std::invalid_argument("a router cannot choose " + std::to_string(routing_.num_chosen) + " of " +
                                std::to_string(num_routed_) + " experts, where there are " + std::to_string(experts_.size()));
  if (!routing_.expert_scales.empty() && (int)routing_.expert_scales.size() != num_routed_)
    throw std::invalid_argument("some experts that a router chooses have a scale, and others none");
  if (!routing_.choice_biases.empty() && (int)routing_.choice_biases.size() != num_routed_)
    throw std::invalid_argument("some experts that a router chooses have a bias, and others none");
  const int groups = routing_.num_groups, looked_at = routing_.num_chosen_groups;
  if (groups < 1 || looked_at < 1 || looked_at > groups || num_routed_ % groups != 0 ||
      looked_at * (num_routed_ / groups) < routing_.num_chosen)
    throw std::invalid_argument("a router cannot choose " + std::to_string(routing_.num_chosen) + " experts from " +
                                std::to_string(looked_at) + " of " + std::to_string(groups) + " groups");
  per_row_ = routing_.num_chosen + (int)experts_.size() - num_routed_;
  const int num_entries = max_rows * per_row_, columns = context.slot(in_).width;
  context.inputs->reserve(max_rows, columns, in_kind_);
  ExpertScratch& all = *scratch_;
  all.inputs.fit(num_entries, columns, in_kind_);
  all.hidden.fit(num_entries, widest_, {true, hidden_kind_.quants});  // the activation writes floats in any case
  fit(all.choices, num_entries);
  all.threads.resize(context.num_threads());
  for (Thread& own : all.threads) {
    fit(own.ranks, num_routed_);
    fit(own.choices, InputRows::private_rows * per_row_);
    fit(own.entries, num_entries);
    own.groups.reserve(experts_.size());
    fit(own.ends, experts_.size());
    own.hidden.fit(InputRows::private_rows * per_row_, widest_, {false, hidden_kind_.quants});
    fit(own.products, (size_t)2 * max_rows * panel_rows);
  }
}

void Experts::run(const Context& context, int thread) {
  ExpertScratch& all = *scratch_;
  Thread& own = all.threads[thread];
  const int num_threads = context.num_threads(), num_entries = context.rows * per_row_;
  // What takes less time than waiting for the others, each thread does for itself.
  const bool is_private = context.rows <= InputRows::private_rows;
  const auto for_each = [&](Counter& counter, int count, const auto& work) {
    if (!is_private) return counter.share(count, 4, work);
    for (int i = 0; i < count; ++i) work(i);
  };

  // 1. Each row's experts, and its input.
  std::vector<Choice>& choices = is_private ? own.choices : all.choices;
  for_each(counters_[0], context.rows, [&](int row) {
    choose(context, row, own.ranks, choices.data() + (size_t)row * per_row_);
  });
  Inputs in = context.inputs->stage(context, in_, norm_, eps_, in_kind_, thread, counters_[1]);
  if (!is_private) context.pool->barrier();

  // 2. The rows of an expert side by side; of two rows it has the first, the second or both, which they are already.
  group(context.rows, choices, own);
  if (!is_private) {
    const Inputs gathered = all.inputs.from(0, in.columns);
    counters_[2].share(num_entries, 4, [&](int i) {
      copy_row(skip_rows(in, own.entries[i].row), skip_rows(gathered, i), in_kind_);
    });
    in = gathered;
    context.pool->barrier();
  }

  // 3. Into the experts.
  const int num_panels = own.groups.back().first_panel + experts_[own.groups.back().expert].gate->num_panels();
  counters_[3].share(num_panels, chunk_of(num_panels, num_threads), [&](int panel) {
    const auto next = std::upper_bound(own.groups.begin(), own.groups.end(), panel,
                                       [](int p, const Group& other) { return p < other.first_panel; });
    const Group& group = *(next - 1);
    const int first = is_private ? own.entries[group.first].row : group.first;
    activate(context, group, panel - group.first_panel, skip_rows(in, first), own);
  });
  context.pool->barrier();

  // 4. And out of them.
  Inputs hidden = (is_private ? own.hidden : all.hidden).from(0, widest_);
  hidden.floats = all.hidden.from(0, widest_).floats;
  if (hidden_kind_.quants) {
    for_each(counters_[4], num_entries, [&](int i) {
      Inputs row = skip_rows(hidden, i);
      row.columns = experts_[own.entries[i].expert].down->columns();
      context.kernels->quantize(row.floats, row, nullptr);
    });
    if (!is_private) context.pool->barrier();
  }
  const int out_panels = experts_[0].down->num_panels(), chunk = chunk_of(out_panels, num_threads);
  counters_[5].share((out_panels + chunk - 1) / chunk, 1, [&](int i) {
    add_up(context, i * chunk, std::min((i + 1) * chunk, out_panels), hidden, own);
  });
  context.pool->barrier();
}

void Experts::choose(const Context& context, int row, std::vector<float>& ranks, Choice* choices) const {
  const float* logits = context.row(router_, row);
  const int num_chosen = routing_.num_chosen;
  rank(logits, ranks);
  // The largest first, equal ones in the experts' order; what is no number still chooses experts.
  for (int expert = 0; expert < num_routed_; ++expert) {
    int at = std::min(expert, num_chosen);
    if (at == num_chosen && !(ranks[expert] > ranks[choices[at - 1].expert])) continue;
    for (at = std::min(at, num_chosen - 1); at > 0 && ranks[expert] > ranks[choices[at - 1].expert]; --at)
      choices[at] = choices[at - 1];
    choices[at].expert = expert;
  }
  weigh(logits, choices);
  const float shared = shared_gate_ < 0 ? 1.0f : sigmoid(context.row(shared_gate_, row)[0]);
  for (int i = num_chosen; i < per_row_; ++i) choices[i] = {num_routed_ + i - num_chosen, shared};
}

// What experts are compared by; those of groups that are not looked at come last.
void Experts::rank(const float* logits, std::vector<float>& ranks) const {
  for (int expert = 0; expert < num_routed_; ++expert) {
    ranks[expert] = routing_.is_sigmoid ? sigmoid(logits[expert]) : logits[expert];
    if (!routing_.choice_biases.empty()) ranks[expert] += routing_.choice_biases[expert];
  }
  if (routing_.num_groups == 1) return;
  const int size = num_routed_ / routing_.num_groups;
  const auto score = [&](int group) {
    float best = -infinity, second = -infinity;
    for (const float* r = &ranks[group * size]; r < &ranks[group * size] + size; ++r) {
      second = std::max(second, std::min(best, *r));
      best = std::max(best, *r);
    }
    return routing_.is_sigmoid && size > 1 ? best + second : best;
  };
  // As many groups as are looked at are better than the others, equal ones in their order.
  std::vector<float> scores(routing_.num_groups);
  for (int group = 0; group < routing_.num_groups; ++group) scores[group] = score(group);
  for (int group = 0; group < routing_.num_groups; ++group) {
    int num_better = 0;
    for (int other = 0; other < routing_.num_groups; ++other)
      num_better += scores[other] > scores[group] || (scores[other] == scores[group] && other < group);
    if (num_better >= routing_.num_chosen_groups) std::fill_n(ranks.begin() + group * size, size, -infinity);
  }
}

void Experts::weigh(const float* logits, Choice* choices) const {
  const int num_chosen = routing_.num_chosen;
  float sum = 0;
  if (routing_.is_sigmoid) {
    for (int i = 0; i < num_chosen; ++i) sum += choices[i].weight = sigmoid(logits[choices[i].expert]);
    if (!routing_.renormalized) sum = 1;
  } else {
    const float largest = logits[choices[0].expert];
    for (int i = 0; i < num_chosen; ++i) sum += choices[i].weight = std::exp(logits[choices[i].expert] - largest);
    if (!routing_.renormalized) {
      sum = 0;
      for (int expert = 0; expert < num_routed_; ++expert) sum += std::exp(logits[expert] - largest);
    }
  }
  for (int i = 0; i < num_chosen; ++i) choices[i].weight *= routing_.scale / sum;
  if (!routing_.expert_scales.empty())
    for (int i = 0; i < num_chosen; ++i) choices[i].weight *= routing_.expert_scales[choices[i].expert];
}

void Experts::group(int num_rows, const std::vector<Choice>& choices, Thread& own) const {
  const int num_entries = num_rows * per_row_;
  std::fill(own.ends.begin(), own.ends.end(), 0);
  for (int i = 0; i < num_entries; ++i) ++own.ends[choices[i].expert];
  own.groups.clear();
  int first = 0, panels = 0;
  for (int expert = 0; expert < (int)experts_.size(); ++expert) {
    const int count = own.ends[expert];
    own.ends[expert] = first;
    if (count == 0) continue;
    own.groups.push_back({expert, first, count, panels});
    first += count;
    panels += experts_[expert].gate->num_panels();
  }
  for (int i = 0; i < num_entries; ++i)
    own.entries[own.ends[choices[i].expert]++] = {i / per_row_, choices[i].expert, choices[i].weight};
}

void Experts::activate(const Context& context, const Group& group, int panel, const Inputs& in, Thread& own) {
  const Kernels& kernels = *context.kernels;
  const Expert& expert = experts_[group.expert];
  float *gates = own.products.data(), *ups = gates + (size_t)group.count * panel_rows;
  const auto bias = [&](const Vector& all) { return all ? all->data() + panel * panel_rows : nullptr; };
  kernels.panel[(int)expert.gate->format()](*expert.gate, panel, in, group.count, {gates, panel_rows, bias(expert.gate_bias), false});
  kernels.panel[(int)expert.up->format()](*expert.up, panel, in, group.count, {ups, panel_rows, bias(expert.up_bias), false});
  const Inputs hidden = scratch_->hidden.from(group.first, widest_);
  for (int i = 0; i < group.count; ++i)
    kernels.gate(activation_, gates + i * panel_rows, ups + i * panel_rows, panel_rows,
                 const_cast<float*>(hidden.floats) + i * hidden.stride + panel * panel_rows);
}

void Experts::add_up(const Context& context, int first_panel, int end_panel, const Inputs& hidden, Thread& own) const {
  float* products = own.products.data();
  if (!accumulate_)
    for (int r = 0; r < context.rows; ++r)
      std::fill(context.row(out_, r) + first_panel * panel_rows, context.row(out_, r) + end_panel * panel_rows, 0.0f);
  for (const Group& group : own.groups) {
    const Expert& expert = experts_[group.expert];
    const Inputs in = skip_rows(hidden, group.first);
    for (int panel = first_panel; panel < end_panel; ++panel) {
      const float* bias = expert.down_bias ? expert.down_bias->data() + panel * panel_rows : nullptr;
      context.kernels->panel[(int)expert.down->format()](*expert.down, panel, in, group.count, {products, panel_rows, bias, false});
      for (int i = 0; i < group.count; ++i) {
        const Entry& entry = own.entries[group.first + i];
        float* out = context.row(out_, entry.row) + panel * panel_rows;
        for (int lane = 0; lane < panel_rows; ++lane) out[lane] += entry.weight * products[i * panel_rows + lane];
      }
    }
  }
}

}  // namespace kaiwa
