// What a program is made of, and what a step of it sees while a batch runs.
//
// All threads call `run` of every step, one step after another. A step shares its work out by counters, so that a thread
// that is held up holds nobody else up for long, and ends with a barrier where a later step reads what it wrote.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "../kernels/kernels.h"
#include "../kv_cache.h"
#include "../state_cache.h"
#include "../thread_pool.h"

namespace kaiwa {

// A norm's weight or a bias, padded with zeros to a multiple of 16.
struct PaddedRow {
  std::vector<float> values;
  const float* data() const { return values.data(); }
};
using Vector = std::shared_ptr<PaddedRow>;
using MatrixPtr = std::shared_ptr<const Matrix>;

// A place for one value per row of the batch: `width` numbers each. It begins as zeros that take no memory.
struct Slot {
  Slot(int width, int max_rows);
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  int width, padded;
  std::unique_ptr<void, Free> memory;
  float* data;  // aligned to a cache line

  float* row(int index) const { return data + (size_t)index * padded; }
};

// The rows of a batch that belong to one sequence: tokens at positions [start, start + count).
struct BatchSlice {
  int start;
  int count;
  const BlockTable* blocks;  // of the sequence, which outlives the batch
  bool is_prompt = false;   // and not of an answer: see Context::first_prompt_row
  bool is_long = false;     // of a sequence long enough for the other frequencies of ropes that have two sets
  int state = -1;           // the sequence's slot of the state cache, where a program has recurrent layers
  int checkpoint = -1;      // the slot that gets a copy of the state as it is after `checkpoint_tokens` of the slice
  int checkpoint_tokens = 0;
};

struct Batch {
  std::vector<int> token_ids;
  std::vector<BatchSlice> slices;  // in the order of their rows; those of prompts come last
  std::vector<int> logit_rows;     // increasing
  bool is_headless = false;        // ends with the hidden states of these rows, before the output head
};

// The rotations of one rope for the rows of a batch.
struct Rope {
  std::vector<float> frequencies;       // radians per position, for each pair of a head's numbers
  std::vector<float> long_frequencies;  // the same, in long sequences
  float magnitude;                      // what cosines and sines are multiplied by
  std::vector<float> table;             // (rows, 2, pairs): cosines, then sines

  int num_pairs() const { return (int)frequencies.size(); }
  const float* cos(int row) const { return table.data() + (size_t)2 * num_pairs() * row; }
  const float* sin(int row) const { return cos(row) + num_pairs(); }
};

// Hands out the numbers 0.. to whoever asks first.
class Counter {
 public:
  void reset() { next_.store(0, std::memory_order_relaxed); }
  // Calls work(i) for 0 <= i < count; `chunk` neighbours at a time go to one thread.
  template <class Work> void share(int count, int chunk, const Work& work) {
    for (int first; (first = next_.fetch_add(chunk, std::memory_order_relaxed)) < count;)
      for (int i = first, end = std::min(first + chunk, count); i < end; ++i) work(i);
  }

 private:
  alignas(64) std::atomic<int> next_{0};
};

class InputRows;

// The batch that is running, and what steps work with.
struct Context {
  const Batch* batch;
  int rows;                      // that the step works on: all tokens, or those whose logits are asked for
  // Rows from here on are of prompts. A processor with tiles of 16-bit numbers multiplies these in other roundings than the
  // rows of answers, so that what a row comes to depends on which of the two it is, and on nothing else of the batch.
  int first_prompt_row;
  int num_tokens;
  std::vector<int> positions;    // of each token
  std::vector<char> is_long;     // whether each token's sequence is
  std::vector<int> first_rows;   // of each slice
  const Kernels* kernels;
  ThreadPool* pool;
  KvCache* cache;
  StateCache* states;
  std::vector<Slot>* slots;
  std::vector<Rope>* ropes;
  InputRows* inputs;

  Slot& slot(int index) const { return (*slots)[index]; }
  float* row(int slot, int index) const { return (*slots)[slot].row(index); }
  int num_threads() const { return pool->num_threads(); }
};

class Step {
 public:
  virtual ~Step() = default;
  // Once, as the step is added: memory is taken here, never in `run`.
  virtual void prepare(const Context&, int max_rows) { (void)max_rows; }
  // Before every batch, on one thread.
  virtual void begin(const Context&) {}
  virtual void run(const Context& context, int thread) = 0;
  // Whether later steps see only the rows whose logits are asked for.
  virtual bool selects() const { return false; }

  void reset() {
    for (Counter& counter : counters_) counter.reset();
  }

 protected:
  std::array<Counter, 6> counters_;
};

}  // namespace kaiwa
