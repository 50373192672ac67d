// A model as a list of steps over rows of numbers, recorded once and replayed for every batch.
#pragma once

#include <string>
#include <utility>

#include "draws.h"
#include "steps/attention.h"
#include "steps/experts.h"
#include "steps/input_rows.h"
#include "steps/step.h"

namespace kaiwa {

class Program {
 public:
  Program(std::shared_ptr<ThreadPool> pool, const Kernels* kernels, std::shared_ptr<KvCache> cache,
          std::shared_ptr<StateCache> states, int max_rows);
  Program(const Program&) = delete;

  // Frequencies of the rotation, one per pair of a head's numbers; those for long sequences, as many; and what cos and
  // sin are multiplied by. The same ones have the same index.
  int add_rope(std::vector<float> frequencies, std::vector<float> long_frequencies, float magnitude);
  int add_slot(int width);
  void add_step(std::unique_ptr<Step> step);
  void add_attention(int queries, int keys, int values, int out, AttentionOptions options);

  // For the mixtures of experts among the steps.
  const std::shared_ptr<ExpertScratch>& expert_scratch() const { return expert_scratch_; }

  // Runs every step. Throws std::invalid_argument for a batch that does not fit.
  void run(const Batch& batch);
  // Runs every step on `rows` rows that `slot` is filled with, without tokens or a cache.
  void run_rows(int rows, int slot, const float* values, bool is_prompt);

  // Draws tokens after some rows of logits, several sequences at once.
  std::vector<Drawn> draw(int slot, const std::vector<Draw>& draws);
  // The sum of the rows [first, end) of a slot under a norm.
  std::vector<double> add_up(int slot, const PaddedRow& norm, float eps, int first, int end) const;

  // The last value of a slot; rows beyond those of the last batch are old.
  const Slot& slot(int index) const { return slots_.at(index); }
  int max_rows() const { return max_rows_; }
  // What kind of step each is, and the seconds that it took, summed over all runs since profiling began.
  std::vector<std::pair<std::string, double>> profile() const;
  void set_profiling(bool on);

 private:
  void check(const Batch& batch) const;
  void replay(const Batch& batch);
  void fill_ropes(int thread);

  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<KvCache> cache_;
  std::shared_ptr<StateCache> states_;
  const int max_rows_;
  std::vector<Slot> slots_;
  std::vector<Rope> ropes_;
  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<std::shared_ptr<AttentionPlan>> attention_plans_;  // one for each shape of heads
  std::shared_ptr<ExpertScratch> expert_scratch_ = std::make_shared<ExpertScratch>();
  InputRows inputs_;
  Context context_{};
  std::vector<double> profile_;
  bool is_profiling_ = false;
};

}  // namespace kaiwa
