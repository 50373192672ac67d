// The input of matrix products: rows under a norm, and quantized where the matrix is.
#pragma once

#include "step.h"

namespace kaiwa {

// What a product wants its input to be.
struct InputKind {
  bool floats = false;      // some matrix is in floats
  bool quants = false;      // some matrix is quantized
  bool is_precise = false;  // with what quantizing loses as further rows: row `rows + r` goes with row r

  void add(const Matrix& matrix) { (is_float(matrix.format()) ? floats : quants) = true; }
};

// Rows of input, in memory of their own.
class InputBuffer {
 public:
  // Makes room for so many rows of so many columns.
  void fit(int rows, int columns, InputKind kind);
  Inputs from(int row, int columns);

 private:
  std::vector<float> floats_;
  std::vector<InputBlock> blocks_;
};

// The same inputs without their first rows.
Inputs skip_rows(const Inputs& in, int rows);
// Copies one row of inputs of the same width.
void copy_row(const Inputs& from, const Inputs& to, InputKind kind);

class InputRows {
 public:
  explicit InputRows(int num_threads) : private_(num_threads) {}
  // Few enough rows that every thread prepares them for itself rather than waiting for the others.
  static constexpr int private_rows = 2;

  // Makes room for rows of so many columns.
  void reserve(int max_rows, int columns, bool is_precise);
  // The rows of slot `in`, `norm` applied where it is not null. For few rows every thread makes them for itself; for
  // more, threads share the work out by `counter` and wait for each other.
  Inputs stage(const Context& context, int in, const Vector& norm, float eps, InputKind kind, int thread, Counter& counter);

 private:
  void stage_row(const Context& context, InputBuffer& to, int in, int row, const Vector& norm, float eps, InputKind kind) const;

  InputBuffer shared_;
  std::vector<InputBuffer> private_;  // of each thread
};

}  // namespace kaiwa
