// What every instruction-set tier offers, as one table of functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "../matrix.h"

namespace kaiwa {

enum class Activation { Silu, GeluTanh, Sigmoid, ClampedSilu };

// Thirty-two columns of sixteen input rows, quantized: a number is scale * quant + offset, where the offset is the middle
// of the block's range (a lone large number then costs the others half as much precision as a scale about zero would).
constexpr int block_rows = 16;
struct alignas(64) InputBlock {
  struct Row {
    float scale, offset;
    float sum;                // of the 32 numbers
    float low_sum, high_sum;  // of the first and the last 16
  };
  int8_t quants[block_rows][block_columns];
  Row rows[block_rows];
};

// Rows of input to a matrix product: `floats` serve float matrices, `blocks` quantized ones.
struct Inputs {
  const float* floats = nullptr;
  size_t stride = 0;             // of `floats`, in numbers
  int columns = 0;
  InputBlock* blocks = nullptr;  // of all rows that lie together: (rows / 16 rounded up, block_stride)
  int block_stride = 0;
  int first_row = 0;             // among these, which `floats` already begins at

  InputBlock* row_blocks(int row) const { return blocks + (size_t)((first_row + row) / block_rows) * block_stride; }
};

// Thirty-two columns of sixteen input rows in bfloat16.
struct alignas(64) InputTile {
  uint16_t numbers[block_rows][block_columns];
};

// Rows of input in bfloat16: (rows / 16 rounded up, num_blocks, parts) tiles. With two parts, a number is their sum.
struct TiledInputs {
  InputTile* tiles;
  int num_blocks;
  int parts;

  InputTile* tile(int group, int block) const { return tiles + ((size_t)group * num_blocks + block) * parts; }
};

// Where a panel's products go: row t's sixteen to out + t * stride, with the sixteen of `bias` added unless it is null, or
// onto what is there.
struct Outputs {
  float* out;
  size_t stride;
  const float* bias;
  bool accumulate;
};

// One piece of attention: `num_tokens` neighbouring tokens of one sequence, one key-value head and the query heads that
// share it, over the cache blocks that hold positions [first_key, end_key).
constexpr int cache_block_tokens = 32;
constexpr int max_attention_rows = 64;
constexpr int max_attention_keys = 512;  // of one piece, where its rows are a prompt's
constexpr int max_head_dim = 1024;

// What the cache keeps numbers as. Of bytes, each token of a head has a scale of its own.
enum class CacheFormat { Float16, Float32, Int8 };

// The bytes of one head's keys, or values, in a block: 32 tokens' numbers, and their scales behind them.
constexpr size_t cache_head_bytes(CacheFormat format, int padded_dim) {
  const size_t numbers = (size_t)cache_block_tokens * padded_dim;
  if (format == CacheFormat::Int8) return numbers + cache_block_tokens * sizeof(float);
  return numbers * (format == CacheFormat::Float32 ? sizeof(float) : sizeof(uint16_t));
}
// The scales of a head's bytes.
inline float* cache_scales(uint8_t* head, int padded_dim) {
  return reinterpret_cast<float*>(head + (size_t)cache_block_tokens * padded_dim);
}

struct AttentionTask {
  int num_rows;              // num_tokens * heads_per_group, at most max_attention_rows
  int heads_per_group;
  int head_dim;              // numbers of a head
  int padded_dim;            // rounded up to 16
  int first_position;        // of row 0; row r is at first_position + r / heads_per_group
  int window;                // a token sees this many positions including its own; 0: all
  float softcap;             // 0: none
  const float* queries;      // (num_rows, padded_dim), rotated and scaled
  int first_key, end_key;    // first_key is a multiple of cache_block_tokens
  uint8_t* const* keys;          // one pointer per cache block from first_key on: (head_dim, 32)
  uint8_t* const* values;        // (32, padded_dim)
  CacheFormat format;
  // Running softmax over the rows: largest score, sum of exponentials, weighted values (num_rows, padded_dim).
  float* largest;
  float* sums;
  float* weighted;
  float* scratch;            // attention_scratch(padded_dim) numbers
  InputTile* tiles;          // room for attend_tiles: num_attention_tiles of them
};
constexpr size_t attention_scratch(int padded_dim) {
  return (size_t)2 * cache_block_tokens * padded_dim + max_attention_rows * cache_block_tokens;
}

// The gated delta rule on sixteen columns of a head's state, over some tokens of one sequence.
struct DeltaRuleTask {
  int num_tokens;
  int key_dim;            // even
  const float* queries;   // (num_tokens, key_dim)
  const float* keys;      // (num_tokens, key_dim)
  const float* products;  // of each token: query · key
  const float* decays;    // of each token: what the state is multiplied by first
  const float* rates;     // of each token: how far what the state knows of the key moves towards the value
  const float* values;    // token t's sixteen at values + t * stride
  float* out;             // as values
  size_t stride;
  float* state;           // (key_dim, 16), brought up to date
};

struct Kernels {
  std::string_view name;
  void (*rms_norm)(const float* x, const float* weight, float eps, int count, float* out);
  // Fills the blocks of the first row of `to`, and `residual`, unless it is null, with what rounding left over.
  void (*quantize)(const float* x, const Inputs& to, float* residual);
  // out[i] = activation(gate[i]) * up[i]; count is a multiple of 16.
  void (*gate)(Activation activation, const float* gate, const float* up, int count, float* out);
  // x[i] = cap * tanh(x[i] / cap); count is a multiple of 16.
  void (*softcap)(float* x, int count, float cap);
  // The sum of e^(x[i] - peak), where no x[i] is above the peak; count is a multiple of 16.
  float (*sum_exponentials)(const float* x, int count, float peak);
  // out[i] += x[i]; count is a multiple of 16.
  void (*add)(const float* x, int count, float* out);
  void (*panel[num_formats])(const Matrix& matrix, int panel, const Inputs& in, int num_tokens, const Outputs& out);
  // The rows of prompts are multiplied in bfloat16 where a tier has an entry here for the matrix's format, and by `panel`
  // elsewhere. Of neighbouring panels, the first one's products go to `out` and each further one's sixteen numbers on.
  void (*tiled_panels[num_formats])(const Matrix& matrix, int first_panel, int num_panels, const TiledInputs& in, int num_rows,
                                    const Outputs& out);
  void (*fill_tiles)(const float* x, int columns, const TiledInputs& to, int row);
  void (*attend)(const AttentionTask& task);
  // The same for the rows of prompts, in bfloat16, of at most max_attention_keys keys; null where a tier has it not.
  void (*attend_tiles)(const AttentionTask& task);
  size_t num_attention_tiles;
  // Folds the partial result (largest, sums, weighted) of some rows into the first.
  void (*merge_attention)(int num_rows, int padded_dim, float* largest, float* sums, float* weighted, const float* largest2,
                          const float* sums2, const float* weighted2);
  void (*store_half)(const float* x, int count, uint16_t* out);  // count is a multiple of 16
  // Rounds to whole numbers from -127 to 127 and returns what they are to be multiplied by; count is a multiple of 16.
  float (*store_bytes)(const float* x, int count, int8_t* out);
  void (*delta_rule)(const DeltaRuleTask& task);
  // Multiplies 64 pairs of bytes `count` times, a multiple of 16, and adds all up.
  void (*multiply_bytes)(int count, int32_t* out);
};

// The tiers that were compiled in and that this processor has, best first.
const std::vector<const Kernels*>& available_kernels();

// Rotates pairs of the first 2 * num_pairs numbers of a head; `cos` and `sin` have num_pairs numbers each.
void rotate(float* head, int num_pairs, bool interleaved, const float* cos, const float* sin);

}  // namespace kaiwa
