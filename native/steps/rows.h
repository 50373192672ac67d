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

// Norms a row's groups of so many numbers, each by itself, with the same weight.
class NormGroups : public Step {
 public:
  // Throws std::invalid_argument for a row that is no whole number of groups, or groups that are no multiple of 16.
  NormGroups(int slot, Vector weight, int group, float eps) : slot_(slot), weight_(std::move(weight)), group_(group), eps_(eps) {}
  void prepare(const Context& context, int max_rows) override;
  void run(const Context& context, int thread) override;

 private:
  int slot_;
  Vector weight_;
  int group_;
  float eps_;
};

// gate = activation(gate) * in[first, first + the gate's width)
class Gate : public Step {
 public:
  // Throws std::invalid_argument for widths that do not fit each other or are no multiple of 16.
  Gate(int gate, Activation activation, int in, int first) : gate_(gate), activation_(activation), in_(in), first_(first) {}
  void prepare(const Context& context, int max_rows) override;
  void run(const Context& context, int thread) override;

 private:
  int gate_;
  Activation activation_;
  int in_, first_;
};

// Rows of `num_groups` groups of `width` numbers: each group is a number of parts of other rows, one after another, and zeros.
class Regroup : public Step {
 public:
  // Of group g: `width` numbers of a slot's row from g * stride + first on.
  struct Part {
    int slot, stride, first, width;
  };
  // Throws std::invalid_argument for parts that are not there, or too long for a group.
  Regroup(std::vector<Part> parts, int num_groups, int width, int out)
      : parts_(std::move(parts)), num_groups_(num_groups), width_(width), out_(out) {}
  void prepare(const Context& context, int max_rows) override;
  void run(const Context& context, int thread) override;

 private:
  std::vector<Part> parts_;
  int num_groups_, width_, out_;
};

class Scale : public Step {
 public:
  Scale(int slot, float factor) : slot_(slot), factor_(factor) {}
  void run(const Context& context, int thread) override;

 private:
  int slot_;
  float factor_;
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
