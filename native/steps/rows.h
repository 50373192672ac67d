// Steps on single rows: each row's result depends on that row alone.
#pragma once

#include "step.h"

namespace kaiwa {

class Embed : public Step {
 public:
  Embed(MatrixPtr table, int out, float scale) : table_(std::move(table)), out_(out), scale_(scale) {}
  void begin(const Context& context) override;  // throws std::invalid_argument for a token that the table lacks
  void run(const Context& context, int thread) override;

 private:
  MatrixPtr table_;
  int out_;
  float scale_;
};

// Keeps only the rows whose logits are asked for.
class Select : public Step {
 public:
  Select(int in, int out) : in_(in), out_(out) {}
  void run(const Context& context, int thread) override;
  bool selects() const override { return true; }

 private:
  int in_, out_;
};

class Norm : public Step {
 public:
  Norm(int in, Vector weight, float eps, int out) : in_(in), weight_(std::move(weight)), eps_(eps), out_(out) {}
  void run(const Context& context, int thread) override;

 private:
  int in_;
  Vector weight_;
  float eps_;
  int out_;
};

// out += norm(in), or out += in where the norm is null. Spends `in`.
class Add : public Step {
 public:
  Add(int in, Vector norm, float eps, int out) : in_(in), norm_(std::move(norm)), eps_(eps), out_(out) {}
  void run(const Context& context, int thread) override;

 private:
  int in_;
  Vector norm_;
  float eps_;
  int out_;
};

// x = cap * tanh(x / cap)
class Softcap : public Step {
 public:
  Softcap(int slot, float cap) : slot_(slot), cap_(cap) {}
  void run(const Context& context, int thread) override;

 private:
  int slot_;
  float cap_;
};

}  // namespace kaiwa
