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

class InputRows {
 public:
  explicit InputRows(int num_threads) : private_(num_threads) {}
  // Makes room for rows of so many columns.
  void reserve(int max_rows, int columns, bool is_precise);
  // The rows of slot `in`, `norm` applied where it is not null. For few rows every thread makes them for itself; for
  // more, threads share the work out by `counter` and wait for each other.
  Inputs stage(const Context& context, int in, const Vector& norm, float eps, InputKind kind, int thread, Counter& counter);

 private:
  struct Buffers {
    std::vector<float> floats;
    std::vector<int8_t> quants;
    std::vector<float> scales, offsets, sums;
    std::vector<int32_t> negative_sums;

    void fit(int rows, int columns);
    Inputs from(int row, int columns);
  };
  void stage_row(const Context& context, Buffers& to, int in, int row, const Vector& norm, float eps, InputKind kind) const;

  Buffers shared_;
  std::vector<Buffers> private_;  // of each thread
};

}  // namespace kaiwa
