// The input of matrix products: rows under a norm, and quantized where the matrix is.
#pragma once

#include "tiled.h"

namespace kaiwa {

// What a product wants its input to be.
struct InputKind {
  bool floats = false;      // some matrix is in floats
  bool quants = false;      // some matrix is quantized
  bool is_precise = false;  // with what quantizing loses as further rows: row `num_untiled + r` goes with row r
  bool tiles = false;       // rows of prompts in bfloat16, which all matrices take

  void add(const Matrix& matrix) { (is_float(matrix.format()) ? floats : quants) = true; }
  // How many rows are not in bfloat16; they come first.
  int num_untiled(const Context& context) const { return tiles ? context.first_prompt_row : context.rows; }
  // Inputs that may not be rounded to 8 bits are the sum of two parts.
  int num_parts() const { return floats || is_precise ? 2 : 1; }
};

// Rows of input, in memory of their own.
class InputBuffer {
 public:
  // Makes room for so many rows of so many columns.
  void fit(int rows, int columns, InputKind kind);
  Inputs from(int row, int columns);
  TiledInputs tiled(int columns, InputKind kind);

 private:
  std::vector<float> floats_;
  std::vector<InputBlock> blocks_;
  std::vector<InputTile> tiles_;
};

// The same inputs without their first rows.
Inputs skip_rows(const Inputs& in, int rows);
// Copies one row of inputs of the same width.
void copy_row(const Inputs& from, const Inputs& to, InputKind kind);

class InputRows {
 public:
  explicit InputRows(int num_threads) : private_(num_threads), products_(num_threads) {}
  // Few enough rows that every thread prepares them for itself rather than waiting for the others.
  static constexpr int private_rows = 2;

  // Makes room for rows of so many columns.
  void reserve(int max_rows, int columns, InputKind kind);
  // The rows of slot `in`, `norm` applied where it is not null. For few rows every thread makes them for itself; for
  // more, threads share the work out by `counter` and wait for each other. Of these `inputs`, the first `num_untiled` are
  // to be used, and the others in `tiled`, where row 0 is the first of them.
  Inputs stage(const Context& context, int in, const Vector& norm, float eps, InputKind kind, int thread, Counter& counter);
  TiledInputs tiled(int columns, InputKind kind) { return shared_.tiled(columns, kind); }
  // A thread's memory for the products of two chunks of panels with prompts: (2, rows, 16 * max_panels).
  float* products(int thread) { return products_[thread].data(); }

 private:
  void stage_row(const Context& context, InputBuffer& to, int in, int row, const Vector& norm, float eps, InputKind kind) const;

  InputBuffer shared_;
  std::vector<InputBuffer> private_;  // of each thread
  std::vector<std::vector<float>> products_;
};

}  // namespace kaiwa
