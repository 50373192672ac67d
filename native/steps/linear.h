// Matrix products.
#pragma once

#include "input_rows.h"

namespace kaiwa {

// out_i (+)= weights_i · norm(in) + bias_i, for several matrices that read the same input. Where it is precise, a quantized
// matrix also takes what was lost as its input was rounded to 8 bits, as a second row.
class Linear : public Step {
 public:
  struct Part {
    MatrixPtr weights;
    Vector bias;
    int out;
  };
  Linear(int in, Vector norm, float eps, std::vector<Part> parts, bool accumulate, bool is_precise);
  void prepare(const Context& context, int max_rows) override;
  void run(const Context& context, int thread) override;

 private:
  void run_panel(const Context& context, const Part& part, int panel, int num_rows, const Inputs& in, int thread);
  void run_prompts(const Context& context);

  int in_;
  Vector norm_;
  float eps_;
  std::vector<Part> parts_;
  bool accumulate_;
  InputKind kind_;
  int num_panels_ = 0;
  std::vector<std::vector<float>> both_;  // of each thread: (2, rows, 16), a row's product and its rest's
};

// out = activation(gate · norm(in)) * (up · norm(in))
class Gated : public Step {
 public:
  Gated(int in, Vector norm, float eps, MatrixPtr gate, MatrixPtr up, Activation activation, int out);
  void prepare(const Context& context, int max_rows) override;
  void run(const Context& context, int thread) override;

 private:
  void run_prompts(const Context& context, int thread);

  int in_;
  Vector norm_;
  float eps_;
  MatrixPtr gate_, up_;
  Activation activation_;
  int out_;
  InputKind kind_;
  std::vector<std::vector<float>> products_;  // of each thread: (2, rows, 16), the gate's and the other's
};

}  // namespace kaiwa
