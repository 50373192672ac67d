// Runs every kernel of every tier that this processor has beside the portable tier, and prints how far they differ.
//
//   compare_tiers FOLDER ROWS COLUMNS
//
// FOLDER holds ROWS x COLUMNS random weights for each number format of one tensor: Q4_0.bin and so on. A line of output is the tier,
// the kernel and the largest difference, as a share of the largest number that the portable tier found.

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "matrix.h"
#include "pack_parts.h"
#include "thread_pool.h"

using namespace kaiwa;
using Floats = std::vector<float>;

namespace {

std::mt19937 random_bits(1);

Floats random_floats(size_t count) {
  std::normal_distribution<float> normal;
  Floats values(count);
  for (float& value : values) value = normal(random_bits);
  return values;
}

double difference(const Floats& found, const Floats& expected) {
  double largest = 1e-30, apart = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, (double)std::fabs(expected[i]));
    // Written so that NaN counts as far apart.
    const double gap = std::fabs((double)found[i] - expected[i]);
    if (!(gap <= apart)) apart = std::isnan(gap) ? INFINITY : gap;
  }
  return apart / largest;
}

void tell(const Kernels& tier, const std::string& kernel, const Floats& found, const Floats& expected) {
  printf("%s\t%s\t%.3g\n", std::string(tier.name).c_str(), kernel.c_str(), difference(found, expected));
}

// Quantized rows, and the memory they lie in.
struct QuantizedRows {
  QuantizedRows(const Kernels& kernels, const Floats& x, int rows, int columns)
      : blocks((size_t)(rows + block_rows - 1) / block_rows * (columns / block_columns)), residual(x.size()),
        inputs{x.data(), (size_t)columns, columns, blocks.data(), columns / block_columns, 0} {
    for (int r = 0; r < rows; ++r) {
      Inputs row = inputs;
      row.first_row = r;
      kernels.quantize(x.data() + (size_t)r * columns, row, residual.data() + (size_t)r * columns);
    }
  }
  // All that was computed, as numbers.
  Floats all() const {
    Floats values = residual;
    for (const InputBlock& block : blocks) {
      for (const auto& row : block.quants) values.insert(values.end(), std::begin(row), std::end(row));
      for (const InputBlock::Row& row : block.rows)
        values.insert(values.end(), {row.scale, row.offset, row.sum, row.low_sum, row.high_sum});
    }
    return values;
  }
  std::vector<InputBlock> blocks;
  Floats residual;
  Inputs inputs;
};

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Random weights of a format that several tensors make.
std::shared_ptr<Matrix> random_parts(Format format, int rows, int columns, ThreadPool& pool) {
  constexpr int group = 64;
  const size_t count = (size_t)rows * columns;
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = (uint8_t)(random_bits() % 127);
  const PartBytes all(bytes), half = all.first(count / 2);
  const Floats numbers = random_floats(count / group);
  switch (format) {
    case Format::Int8: return pack_int8(all, PartFloats(numbers).first(rows), rows, columns, {rows}, pool);
    case Format::Int4: return pack_gptq({half, half.first(count / group / 2), numbers, group, 1}, rows, columns, {rows}, pool);
    case Format::Float8: return pack_float8(all, numbers, 1, group, rows, columns, {rows}, pool);
    default: return pack_table4(half, PartFloats(numbers).first(16), numbers, group, rows, columns, {rows}, pool);
  }
}

std::shared_ptr<Matrix> random_matrix(Format format, const std::string& folder, int rows, int columns, ThreadPool& pool) {
  if (info(format).bytes == 0) return random_parts(format, rows, columns, pool);
  const std::vector<uint8_t> data = read_file(folder + "/" + std::string(info(format).name) + ".bin");
  return std::make_shared<Matrix>(format, data.data(), data.size(), rows, columns, pool);
}

void compare_products(const Kernels& tier, const Kernels& portable, const std::string& folder, int rows, int columns) {
  ThreadPool pool(1);
  for (int f = 0; f < num_formats; ++f) {
    const std::string name(info((Format)f).name);
    const auto owner = random_matrix((Format)f, folder, rows, columns, pool);
    const Matrix& matrix = *owner;
    for (int tokens : {1, 3, 13}) {
      const Floats x = random_floats((size_t)tokens * columns);
      const QuantizedRows quantized(portable, x, tokens, columns);
      const size_t stride = (size_t)matrix.num_panels() * panel_rows;
      const Floats bias = random_floats(stride);
      Floats found(tokens * stride, 1.0f), expected(tokens * stride, 1.0f);
      for (int p = 0; p < matrix.num_panels(); ++p) {
        const bool accumulate = p % 2, biased = p % 3 == 0;
        const float* panel_bias = biased ? &bias[p * panel_rows] : nullptr;
        tier.panel[f](matrix, p, quantized.inputs, tokens, {&found[p * panel_rows], stride, panel_bias, accumulate});
        portable.panel[f](matrix, p, quantized.inputs, tokens, {&expected[p * panel_rows], stride, panel_bias, accumulate});
      }
      tell(tier, "product of " + name + " with " + std::to_string(tokens), found, expected);
    }
  }
}

void compare_rows(const Kernels& tier, const Kernels& portable) {
  constexpr int count = 1024;
  const Floats x = random_floats(count), y = random_floats(count);
  const auto both = [&](const std::string& name, const auto& compute) {
    Floats found = y, expected = y;
    compute(tier, found.data());
    compute(portable, expected.data());
    tell(tier, name, found, expected);
  };
  both("rms_norm", [&](const Kernels& k, float* out) { k.rms_norm(x.data(), y.data(), 1e-5f, count, out); });
  both("add", [&](const Kernels& k, float* out) { k.add(x.data(), count, out); });
  both("silu", [&](const Kernels& k, float* out) { k.gate(Activation::Silu, x.data(), y.data(), count, out); });
  both("gelu", [&](const Kernels& k, float* out) { k.gate(Activation::GeluTanh, x.data(), y.data(), count, out); });
  both("sum_exponentials", [&](const Kernels& k, float* out) { *out = k.sum_exponentials(out, count, 6.0f); });
  both("softcap", [&](const Kernels& k, float* out) { k.softcap(out, count, 0.7f); });
  both("store_half", [&](const Kernels& k, float* out) {
    std::vector<uint16_t> halves(count);
    Floats spread = x;
    for (int i = 0; i < count; ++i) spread[i] *= std::exp2f((float)(i % 64 - 40));  // subnormal, normal and infinite ones
    k.store_half(spread.data(), count, halves.data());
    std::copy(halves.begin(), halves.end(), out);
  });
  both("store_bytes", [&](const Kernels& k, float* out) {
    std::vector<int8_t> bytes(count);
    out[0] = k.store_bytes(x.data(), count, bytes.data());
    for (int i = 1; i < count; ++i) out[i] = (float)bytes[i];
  });
  both("multiply_bytes", [&](const Kernels& k, float* out) {
    int32_t total;
    k.multiply_bytes(32, &total);
    out[0] = (float)total;
  });
  Floats wide = x;
  for (int i = 0; i < count; ++i) wide[i] = i < 64 ? 0.0f : wide[i] * std::exp2f((float)(i / 32 - 16));
  tell(tier, "quantize", QuantizedRows(tier, wide, 1, count).all(), QuantizedRows(portable, wide, 1, count).all());
}

void compare_attention(const Kernels& tier, const Kernels& portable, int num_tokens, int head_dim, CacheFormat format, int window,
                       float softcap) {
  constexpr int heads = 3, blocks = 4;
  const int rows = num_tokens * heads, padded = (head_dim + 15) / 16 * 16, end = 100;
  const size_t head_numbers = (size_t)cache_block_tokens * padded, head_bytes = cache_head_bytes(format, padded);
  const Floats numbers = random_floats(2 * blocks * head_numbers), queries = random_floats((size_t)rows * padded);
  std::vector<uint8_t> cache(2 * blocks * head_bytes);
  std::vector<uint8_t*> keys, values;
  for (int b = 0; b < 2 * blocks; ++b) {
    uint8_t* head = &cache[b * head_bytes];
    const float* from = &numbers[b * head_numbers];
    (b < blocks ? keys : values).push_back(head);
    if (format == CacheFormat::Float32) memcpy(head, from, head_bytes);
    if (format == CacheFormat::Float16) portable.store_half(from, (int)head_numbers, reinterpret_cast<uint16_t*>(head));
    if (format != CacheFormat::Int8) continue;
    const float scale = portable.store_bytes(from, (int)head_numbers, reinterpret_cast<int8_t*>(head));
    for (int t = 0; t < cache_block_tokens; ++t) cache_scales(head, padded)[t] = scale * (float)(t % 7 + 1) / 4;
  }
  const auto attend = [&](const Kernels& k) {
    Floats largest(rows, -1e30f), sums(rows), weighted((size_t)rows * padded), scratch(attention_scratch(padded));
    AttentionTask task{};
    task.num_rows = rows, task.heads_per_group = heads, task.head_dim = head_dim, task.padded_dim = padded;
    task.first_position = end - num_tokens, task.window = window, task.softcap = softcap;
    task.queries = queries.data(), task.first_key = 0, task.end_key = end;
    task.keys = keys.data(), task.values = values.data(), task.format = format;
    task.largest = largest.data(), task.sums = sums.data(), task.weighted = weighted.data(), task.scratch = scratch.data();
    k.attend(task);
    const Floats largest2 = largest, sums2 = sums, weighted2 = weighted;
    for (float& peak : largest) peak -= 1;
    k.merge_attention(rows, padded, largest.data(), sums.data(), weighted.data(), largest2.data(), sums2.data(), weighted2.data());
    Floats all = weighted;
    all.insert(all.end(), sums.begin(), sums.end());
    all.insert(all.end(), largest.begin(), largest.end());
    return all;
  };
  tell(tier, "attention", attend(tier), attend(portable));
}

void compare_delta_rule(const Kernels& tier, const Kernels& portable) {
  constexpr int tokens = 5, dim = 48, stride = 32;
  const Floats queries = random_floats(tokens * dim), state = random_floats(dim * 16);
  const Floats products = random_floats(tokens), values = random_floats(tokens * stride);
  const Floats decays(tokens, 0.9f), rates(tokens, 0.3f);
  Floats keys = random_floats(tokens * dim);
  for (float& key : keys) key /= std::sqrt((float)dim);
  const auto both = [&](const Kernels& k) {
    Floats found(tokens * stride), after = state;
    k.delta_rule({tokens, dim, queries.data(), keys.data(), products.data(), decays.data(), rates.data(), values.data(),
                  found.data(), stride, after.data()});
    found.insert(found.end(), after.begin(), after.end());
    return found;
  };
  tell(tier, "delta_rule", both(tier), both(portable));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return fprintf(stderr, "usage: compare_tiers FOLDER ROWS COLUMNS\n"), 2;
  const Kernels& portable = *available_kernels().back();
  for (const Kernels* tier : available_kernels()) {
    compare_products(*tier, portable, arguments[1], std::stoi(arguments[2]), std::stoi(arguments[3]));
    compare_rows(*tier, portable);
    compare_delta_rule(*tier, portable);
    for (int tokens : {1, 4, 16})
      for (CacheFormat format : {CacheFormat::Float16, CacheFormat::Float32, CacheFormat::Int8}) {
        compare_attention(*tier, portable, tokens, 64, format, 0, 0);
        compare_attention(*tier, portable, tokens, 40, format, 45, 0);
        compare_attention(*tier, portable, tokens, 48, format, 0, 20);
      }
  }
}
