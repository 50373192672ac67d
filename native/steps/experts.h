// A mixture of experts: each row goes through the few gated feed-forward networks that a router chose for it.
#pragma once

#include "input_rows.h"

namespace kaiwa {

// down · (activation(gate · x + gate_bias) * (up · x + up_bias)) + down_bias; biases may be null.
struct Expert {
  MatrixPtr gate, up, down;
  Vector gate_bias, up_bias, down_bias;
};

// How a row's experts are chosen by the router's logits, and what their results are multiplied by: the softmax over all
// experts, or each one's sigmoid; divided by the chosen ones' sum where it is `renormalized`, times `scale`, times the
// expert's own of `expert_scales` unless there are none.
struct Routing {
  int num_chosen;
  bool renormalized;
  float scale;
  std::vector<float> expert_scales;
  bool is_sigmoid;
  std::vector<float> choice_biases;  // added to sigmoids as they are compared; none: 0
  // Experts lie in groups, of which only the best are looked at: those with the largest logit, or the largest sum of two
  // sigmoids with their biases.
  int num_groups, num_chosen_groups;
};

// Memory that all mixtures of a program share.
struct ExpertScratch {
  struct Choice {
    int expert;
    float weight;
  };
  // A row that goes to an expert. Entries of one expert lie together, experts follow one another.
  struct Entry {
    int row, expert;
    float weight;
  };
  // The entries [first, first + count), and where the expert's panels begin among all that are in use.
  struct Group {
    int expert, first, count, first_panel;
  };
  struct Thread {
    std::vector<float> ranks;     // of each expert
    std::vector<Choice> choices;  // where rows are few
    std::vector<Entry> entries;
    std::vector<Group> groups;    // of the experts that have rows, in the experts' order
    std::vector<int> ends;        // of each expert's entries, as they fill
    InputBuffer hidden;           // quantized, where rows are few
    std::vector<float> products;  // (2, rows, 16)
  };
  std::vector<Choice> choices;  // (rows, experts of each)
  InputBuffer inputs, hidden;   // of each entry: what the expert reads, and what comes out of its activation
  std::vector<Thread> threads;
};

// out (+)= the weighted sum of the chosen experts' results, and of the shared ones', in the experts' order: a row's result
// does not depend on the batch it is in. An expert that no row chose is not read.
class Experts : public Step {
 public:
  // Slot `router` holds a logit for each of the first experts; those after them are shared: every row goes through them,
  // and the sigmoid of slot `shared_gate` weighs them unless it is -1.
  // Throws std::invalid_argument for experts that do not fit each other.
  Experts(int in, Vector norm, float eps, int router, int shared_gate, std::vector<Expert> experts, Routing routing,
          Activation activation, int out, bool accumulate, std::shared_ptr<ExpertScratch> scratch);
  void prepare(const Context& context, int max_rows) override;
  void run(const Context& context, int thread) override;

 private:
  void choose(const Context& context, int row, std::vector<float>& ranks, ExpertScratch::Choice* choices) const;
  void rank(const float* logits, std::vector<float>& ranks) const;
  void weigh(const float* logits, ExpertScratch::Choice* choices) const;
  void group(int num_rows, const std::vector<ExpertScratch::Choice>& choices, ExpertScratch::Thread& own) const;
  void activate(const Context& context, const ExpertScratch::Group& group, int panel, const Inputs& in,
                ExpertScratch::Thread& own);
  void add_up(const Context& context, int first_panel, int end_panel, const Inputs& hidden, ExpertScratch::Thread& own) const;

  int in_;
  Vector norm_;
  float eps_;
  int router_, shared_gate_;
  std::vector<Expert> experts_;
  Routing routing_;
  Activation activation_;
  int out_;
  bool accumulate_;
  std::shared_ptr<ExpertScratch> scratch_;
  InputKind in_kind_, hidden_kind_;
  int num_routed_ = 0, per_row_ = 0, widest_ = 0;
};

}  // namespace kaiwa
