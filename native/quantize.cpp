#include "quantize.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "half.h"
#include "thread_pool.h"

// Where the linker can choose: the same source for wider vectors. Without fused multiply-adds (see CMakeLists.txt) every
// version rounds alike.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__)
#define KAIWA_FOR_EACH_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KAIWA_FOR_EACH_WIDTH
#endif

namespace kaiwa {
namespace {

// Sixteen blocks are rounded side by side, one in each lane: what a compiler turns into vector instructions by itself,
// and what leaves the order of every sum as it is written, whatever the instructions.
constexpr int lanes = 16;
constexpr int groups_per_task = 256;
using Group = float[block_columns][lanes];

// To the nearest whole number, ties to even, for |x| < 2^22.
inline float nearest(float x) { return (x + 12582912.0f) - 12582912.0f; }

// Not std::clamp, whose references keep compilers from vector instructions.
inline float limited(float x, float low, float high) {
  const float y = x < low ? low : x;
  return y > high ? high : y;
}

float as_float(Format f, const uint8_t* data, size_t index) {
  if (f == Format::F32) {
    float x;
    memcpy(&x, data + 4 * index, 4);
    return x;
  }
  uint16_t h;
  memcpy(&h, data + 2 * index, 2);
  return f == Format::F16 ? f32_from_f16(h) : f32_from_bf16(h);
}

// Blocks `first` to `first + count`; lanes beyond them hold zeros. Returns whether all numbers are finite.
bool load(Format f, const uint8_t* data, size_t first, int count, Group& x) {
  memset(x, 0, sizeof x);
  uint32_t is_bad = 0;
  for (int lane = 0; lane < count; ++lane)
    for (int c = 0; c < block_columns; ++c) {
      x[c][lane] = as_float(f, data, (first + lane) * block_columns + c);
      is_bad |= (bits_from_f32(x[c][lane]) & 0x7F800000) == 0x7F800000;
    }
  return !is_bad;
}

// A positive number as half precision holds it.
inline float through_half(float x) {
  const uint32_t bits = bits_from_f32(x);
  const float rounded = f32_from_bits((bits + 0xFFF + (bits >> 13 & 1)) & ~0x1FFFu);
  return x < 0x1p-14f ? (x + 0.5f) - 0.5f : rounded;  // subnormal in half: let the adder round
}

bool is_finite_half(uint16_t h) { return (h & 0x7C00) != 0x7C00; }

// x ≈ d * q with q from -127 to 127, lane by lane. Of steps that hardly differ, one happens to lie best: that takes a
// fifth off the squared error of the step that just holds the largest number.
constexpr int trials_q8 = 32;
constexpr float first_q8 = 127.4f, apart_q8 = 0.25f, top_q8 = 127.0f;

struct Step {
  float d[lanes];
};

inline float quant_q8(float x, float per_step) { return nearest(limited(x * per_step, -top_q8, top_q8)); }

KAIWA_FOR_EACH_WIDTH Step search_q8(const Group& x) {
  float largest[lanes] = {}, least[lanes];
  for (int c = 0; c < block_columns; ++c)
    for (int l = 0; l < lanes; ++l) largest[l] = std::fabs(x[c][l]) > largest[l] ? std::fabs(x[c][l]) : largest[l];
  Step best{};
  for (int trial = 0; trial < trials_q8; ++trial) {
    float d[lanes], per_step[lanes], error[lanes] = {};
    for (int l = 0; l < lanes; ++l) {
      d[l] = through_half(largest[l] / (first_q8 - apart_q8 * (float)trial));
      per_step[l] = d[l] > 0.0f ? 1.0f / d[l] : 0.0f;
    }
    for (int c = 0; c < block_columns; ++c)
      for (int l = 0; l < lanes; ++l) {
        const float off = x[c][l] - d[l] * quant_q8(x[c][l], per_step[l]);
        error[l] += off * off;
      }
    for (int l = 0; l < lanes; ++l) {
      const bool is_better = trial == 0 || error[l] < least[l];
      best.d[l] = is_better ? d[l] : best.d[l];
      least[l] = is_better ? error[l] : least[l];
    }
  }
  return best;
}

bool write_q8_0(const Group& x, int count, uint8_t* out) {
  const Step step = search_q8(x);
  for (int l = 0; l < count; ++l, out += 34) {
    const uint16_t d = f16_from_f32(step.d[l]);
    if (!is_finite_half(d)) return false;
    const float per_step = d ? 1.0f / f32_from_f16(d) : 0.0f;
    memcpy(out, &d, 2);
    for (int c = 0; c < block_columns; ++c) out[2 + c] = (uint8_t)(int8_t)(int)quant_q8(x[c][l], per_step);
  }
  return true;
}

// x ≈ d * q + m with q from 0 to `top` (15 or 31), lane by lane.
struct Fit {
  float d[lanes], m[lanes], error[lanes];
};

// How many steps lie between a block's smallest and largest number, to begin with: one fewer than `top` leaves room
// above, more cut the largest number off. Over normal and heavier-tailed blocks of 4 bits, these with two rounds of
// fitting come within 1 % of the least squared error that finer searches find, a fifth below that of no search.
constexpr int num_trials = 8, num_fits = 2;
constexpr float below_top = 1.0f, apart = 0.4f;

inline float quant(float x, float m, float per_step, float top) { return nearest(limited((x - m) * per_step, 0.0f, top)); }

// The d and m of least squared error for the q that the given d and m lead to.
[[gnu::always_inline]] inline void refit(const Group& x, Fit& fit, float top) {
  float per_step[lanes], sum_q[lanes] = {}, sum_qq[lanes] = {}, sum_x[lanes] = {}, sum_qx[lanes] = {};
  for (int l = 0; l < lanes; ++l) per_step[l] = fit.d[l] > 0.0f ? 1.0f / fit.d[l] : 0.0f;
  for (int c = 0; c < block_columns; ++c)
    for (int l = 0; l < lanes; ++l) {
      const float q = quant(x[c][l], fit.m[l], per_step[l], top);
      sum_q[l] += q;
      sum_qq[l] += q * q;
      sum_x[l] += x[c][l];
      sum_qx[l] += q * x[c][l];
    }
  for (int l = 0; l < lanes; ++l) {
    const float spread = 32.0f * sum_qq[l] - sum_q[l] * sum_q[l];
    const float d = spread > 0.0f ? (32.0f * sum_qx[l] - sum_q[l] * sum_x[l]) / spread : 0.0f;
    fit.d[l] = d > 0.0f ? d : 0.0f;
    fit.m[l] = (sum_x[l] - fit.d[l] * sum_q[l]) / 32.0f;
  }
}

[[gnu::always_inline]] inline void measure(const Group& x, Fit& fit, float top) {
  float per_step[lanes];
  for (int l = 0; l < lanes; ++l) {
    per_step[l] = fit.d[l] > 0.0f ? 1.0f / fit.d[l] : 0.0f;
    fit.error[l] = 0.0f;
  }
  for (int c = 0; c < block_columns; ++c)
    for (int l = 0; l < lanes; ++l) {
      const float off = x[c][l] - (fit.d[l] * quant(x[c][l], fit.m[l], per_step[l], top) + fit.m[l]);
      fit.error[l] += off * off;
    }
}

// The best of all trials, by squared error; the first among equals.
KAIWA_FOR_EACH_WIDTH Fit search_with_min(const Group& x, float top) {
  float low[lanes], high[lanes];
  for (int l = 0; l < lanes; ++l) low[l] = high[l] = x[0][l];
  for (int c = 1; c < block_columns; ++c)
    for (int l = 0; l < lanes; ++l) {
      low[l] = x[c][l] < low[l] ? x[c][l] : low[l];
      high[l] = x[c][l] > high[l] ? x[c][l] : high[l];
    }
  Fit best{}, fit{};
  for (int trial = 0; trial < num_trials; ++trial) {
    const float steps = top - below_top + apart * (float)trial;
    for (int l = 0; l < lanes; ++l) fit.d[l] = (high[l] - low[l]) / steps, fit.m[l] = low[l];
    for (int i = 0; i < num_fits; ++i) refit(x, fit, top);
    measure(x, fit, top);
    for (int l = 0; l < lanes; ++l) {
      const bool is_better = trial == 0 || fit.error[l] < best.error[l];
      best.d[l] = is_better ? fit.d[l] : best.d[l];
      best.m[l] = is_better ? fit.m[l] : best.m[l];
      best.error[l] = is_better ? fit.error[l] : best.error[l];
    }
  }
  return best;
}

// Q4_1, or Q5_1, which has a fifth bit of every number between the scales and the low four.
bool write_with_min(const Group& x, int count, Format to, uint8_t* out) {
  const float top = to == Format::Q4_1 ? 15.0f : 31.0f;
  const Fit fit = search_with_min(x, top);
  for (int l = 0; l < count; ++l, out += info(to).bytes) {
    const uint16_t halves[2] = {f16_from_f32(fit.d[l]), f16_from_f32(fit.m[l])};
    if (!is_finite_half(halves[0]) || !is_finite_half(halves[1])) return false;
    const float m = f32_from_f16(halves[1]), per_step = halves[0] ? 1.0f / f32_from_f16(halves[0]) : 0.0f;
    uint8_t low[16] = {};
    uint32_t fifth = 0;
    for (int c = 0; c < block_columns; ++c) {
      const int q = (int)quant(x[c][l], m, per_step, top);
      low[c % 16] |= (uint8_t)((q & 15) << (c < 16 ? 0 : 4));
      fifth |= (uint32_t)(q >> 4) << c;
    }
    memcpy(out, halves, 4);
    if (to == Format::Q5_1) memcpy(out + 4, &fifth, 4);
    memcpy(out + info(to).bytes - 16, low, 16);
  }
  return true;
}

}  // namespace

bool quantize(Format from, const uint8_t* data, size_t count, Format to, uint8_t* out, ThreadPool& pool) {
  if (!is_plain(from) || (to != Format::Q8_0 && to != Format::Q5_1 && to != Format::Q4_1))
    throw std::invalid_argument("numbers of " + std::string(info(from).name) + " are not rounded to " + std::string(info(to).name));
  if (count % block_columns)
    throw std::invalid_argument(std::to_string(count) + " numbers are not whole blocks of " + std::to_string(block_columns));
  const size_t num_blocks = count / block_columns;
  constexpr size_t blocks_per_task = (size_t)lanes * groups_per_task;
  std::atomic<bool> is_good{true};
  pool.for_each((int)((num_blocks + blocks_per_task - 1) / blocks_per_task), [&](int task) {
    const size_t end = std::min(num_blocks, (size_t)(task + 1) * blocks_per_task);
    for (size_t block = (size_t)task * blocks_per_task; block < end; block += lanes) {
      const int here = (int)std::min<size_t>(lanes, end - block);
      Group x;
      uint8_t* to_block = out + block * info(to).bytes;
      const bool is_finite = load(from, data, block, here, x);
      if (!is_finite || !(to == Format::Q8_0 ? write_q8_0(x, here, to_block) : write_with_min(x, here, to, to_block)))
        is_good.store(false, std::memory_order_relaxed);
    }
  });
  return is_good;
}

}  // namespace kaiwa
