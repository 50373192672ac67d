// The Python face of the kernels: `kaiwa.engines.native._native`.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bandwidth.h"
#include "checksum.h"
#include "divergence.h"
#include "dot_peak.h"
#include "matrix.h"
#include "pack_parts.h"
#include "program.h"
#include "quantize.h"
#include "sampling.h"
#include "steps/delta_net.h"
#include "steps/experts.h"
#include "steps/linear.h"
#include "steps/rows.h"
#include "thread_pool.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace kaiwa;

namespace {

// A view of a Python object's bytes for as long as this lives.
class Bytes {
 public:
  explicit Bytes(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~Bytes() { PyBuffer_Release(&view_); }
  Bytes(const Bytes&) = delete;
  const uint8_t* data() const { return static_cast<const uint8_t*>(view_.buf); }
  size_t size() const { return (size_t)view_.len; }
  PartBytes part() const { return {data(), size()}; }
  PartFloats floats() const { return {reinterpret_cast<const float*>(data()), size() / sizeof(float)}; }

 private:
  Py_buffer view_;
};

using Floats = nb::ndarray<float, nb::memview, nb::ndim<2>, nb::c_contig>;

Floats to_python(std::vector<float> values, size_t rows, size_t columns) {
  auto* owned = new std::vector<float>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<float>*>(p); });
  return Floats(owned->data(), {rows, columns}, owner);
}

std::shared_ptr<Matrix> make_matrix(std::string_view format, nb::handle data, int rows, int columns,
                                    const std::shared_ptr<ThreadPool>& pool) {
  Bytes bytes(data);
  const auto own = pool ? pool : std::make_shared<ThreadPool>(1);
  nb::gil_scoped_release release;
  return std::make_shared<Matrix>(format_named(format), bytes.data(), bytes.size(), rows, columns, *own);
}

using PoolPtr = std::shared_ptr<ThreadPool>;
using RangeTuple = std::optional<std::tuple<int, int, int>>;  // total, first, step; None: all rows

// pack(range, pool) with the interpreter lock released.
template <class Pack>
std::shared_ptr<Matrix> pack_freely(int rows, const RangeTuple& range, const PoolPtr& pool, const Pack& pack) {
  const PoolPtr own = pool ? pool : std::make_shared<ThreadPool>(1);
  const auto [total, first, step] = range.value_or(std::tuple{rows, 0, 1});
  nb::gil_scoped_release release;
  return pack(RowRange{total, first, step}, *own);
}

std::shared_ptr<Matrix> make_int4(bool is_awq, nb::handle weights, nb::handle zeros, nb::handle scales, int group, int zero_offset,
                                  int rows, int columns, const RangeTuple& range, const PoolPtr& pool) {
  const Bytes w(weights), z(zeros), s(scales);
  const NibbleGroups parts{w.part(), z.part(), s.floats(), group, zero_offset};
  return pack_freely(rows, range, pool, [&](RowRange r, ThreadPool& p) {
    return is_awq ? pack_awq(parts, rows, columns, r, p) : pack_gptq(parts, rows, columns, r, p);
  });
}

void bind_parts(nb::module_& m) {
  m.def("pack_int8", [](nb::handle weights, nb::handle scales, int rows, int columns, const RangeTuple& range, const PoolPtr& pool) {
    const Bytes w(weights), s(scales);
    return pack_freely(rows, range, pool, [&](RowRange r, ThreadPool& p) { return pack_int8(w.part(), s.floats(), rows, columns, r, p); });
  }, "weights"_a, "scales"_a, "rows"_a, "columns"_a, "range"_a.none() = nb::none(), "pool"_a.none() = nb::none());
  m.def("pack_gptq", [](nb::handle weights, nb::handle zeros, nb::handle scales, int group, int zero_offset, int rows, int columns,
                        const RangeTuple& range, const PoolPtr& pool) {
    return make_int4(false, weights, zeros, scales, group, zero_offset, rows, columns, range, pool);
  }, "weights"_a, "zeros"_a, "scales"_a, "group"_a, "zero_offset"_a, "rows"_a, "columns"_a, "range"_a.none() = nb::none(), "pool"_a.none() = nb::none());
  m.def("pack_awq", [](nb::handle weights, nb::handle zeros, nb::handle scales, int group, int rows, int columns,
                       const RangeTuple& range, const PoolPtr& pool) {
    return make_int4(true, weights, zeros, scales, group, 0, rows, columns, range, pool);
  }, "weights"_a, "zeros"_a, "scales"_a, "group"_a, "rows"_a, "columns"_a, "range"_a.none() = nb::none(), "pool"_a.none() = nb::none());
  m.def("pack_float8", [](nb::handle weights, nb::handle scales, int tile_rows, int tile_columns, int rows, int columns,
                          const RangeTuple& range, const PoolPtr& pool) {
    const Bytes w(weights), s(scales);
    return pack_freely(rows, range, pool, [&](RowRange r, ThreadPool& p) {
      return pack_float8(w.part(), s.floats(), tile_rows, tile_columns, rows, columns, r, p);
    });
  }, "weights"_a, "scales"_a, "tile_rows"_a, "tile_columns"_a, "rows"_a, "columns"_a, "range"_a.none() = nb::none(), "pool"_a.none() = nb::none());
  m.def("pack_table4", [](nb::handle weights, nb::handle table, nb::handle scales, int block, int rows, int columns,
                          const RangeTuple& range, const PoolPtr& pool) {
    const Bytes w(weights), t(table), s(scales);
    return pack_freely(rows, range, pool, [&](RowRange r, ThreadPool& p) {
      return pack_table4(w.part(), t.floats(), s.floats(), block, rows, columns, r, p);
    });
  }, "weights"_a, "table"_a, "scales"_a, "block"_a, "rows"_a, "columns"_a, "range"_a.none() = nb::none(), "pool"_a.none() = nb::none());
  m.def("pack_mxfp4", [](nb::handle weights, nb::handle exponents, int rows, int columns, const RangeTuple& range, const PoolPtr& pool) {
    const Bytes w(weights), e(exponents);
    return pack_freely(rows, range, pool, [&](RowRange r, ThreadPool& p) { return pack_mxfp4(w.part(), e.part(), rows, columns, r, p); });
  }, "weights"_a, "exponents"_a, "rows"_a, "columns"_a, "range"_a.none() = nb::none(), "pool"_a.none() = nb::none());
  m.def("unpack_nested", [](nb::handle indices, nb::handle table, nb::handle scales, int block, float offset) {
    const Bytes i(indices), t(table), s(scales);
    return to_python(unpack_nested(i.part(), t.floats(), s.floats(), block, offset), 1, i.size());
  }, "indices"_a, "table"_a, "scales"_a, "block"_a, "offset"_a);
}

Vector make_vector(const Matrix& matrix, float offset) {
  if (matrix.rows() != 1) throw std::invalid_argument("a vector is one row");
  auto row = std::make_shared<PaddedRow>();
  row->values.resize((matrix.columns() + 15) / 16 * 16);
  matrix.unpack_row(0, row->values.data());
  for (int i = 0; i < matrix.columns(); ++i) row->values[i] += offset;
  return row;
}

Floats unpack(const Matrix& matrix) {
  std::vector<float> values((size_t)matrix.rows() * matrix.columns());
  for (int r = 0; r < matrix.rows(); ++r) matrix.unpack_row(r, values.data() + (size_t)r * matrix.columns());
  return to_python(std::move(values), matrix.rows(), matrix.columns());
}

// The blocks of the format `to` for numbers of a float format, as a file holds them.
nb::bytes quantized(std::string_view from, nb::handle data, std::string_view to, ThreadPool& pool) {
  const Bytes bytes(data);
  const Format source = format_named(from), target = format_named(to);
  const size_t count = bytes.size() / info(source).bytes;
  nb::bytes blocks(nullptr, count / block_columns * info(target).bytes);
  auto* out = reinterpret_cast<uint8_t*>(PyBytes_AS_STRING(blocks.ptr()));
  nb::gil_scoped_release release;
  if (!quantize(source, bytes.data(), count, target, out, pool))
    throw std::overflow_error("a number is not finite, or too large for a scale in half precision");
  return blocks;
}

uint64_t checksum_of(nb::handle data, ThreadPool& pool) {
  const Bytes bytes(data);
  nb::gil_scoped_release release;
  return checksum(bytes.data(), bytes.size(), pool);
}

// Rows of (KL, expected loss, actual loss, whether the most probable token is the same).
std::vector<std::tuple<double, double, double, bool>> divergence(nb::handle expected, nb::handle actual,
                                                                 const std::vector<int32_t>& targets, ThreadPool& pool) {
  const Bytes ours(expected), theirs(actual);
  const size_t width = targets.empty() ? 0 : ours.size() / sizeof(float) / targets.size();
  if (ours.size() != theirs.size() || ours.size() != targets.size() * width * sizeof(float))
    throw std::invalid_argument("logits must come in rows of one length, one row for each target");
  for (const int32_t target : targets)
    if (target < 0 || (size_t)target >= width) throw std::invalid_argument("a target is no token of the vocabulary");
  nb::gil_scoped_release release;
  std::vector<std::tuple<double, double, double, bool>> rows;
  for (const auto& row : diverge(reinterpret_cast<const float*>(ours.data()), reinterpret_cast<const float*>(theirs.data()),
                                 targets, width, pool))
    rows.emplace_back(row.kl, row.expected_loss, row.actual_loss, row.has_same_top);
  return rows;
}

const Kernels* kernels_named(std::string_view isa) {
  for (const Kernels* kernels : available_kernels())
    if (isa.empty() || kernels->name == isa) return kernels;
  throw std::invalid_argument("this processor has no tier " + std::string(isa));
}

// x · matrixᵀ for rows of float32, by the given tier: for tests and benchmarks.
Floats matmul(std::shared_ptr<Matrix> matrix, nb::handle x, int threads, std::string_view isa, bool precise, bool prompt) {
  Bytes bytes(x);
  const size_t columns = matrix->columns(), rows = bytes.size() / sizeof(float) / columns;
  if (rows == 0 || rows * columns * sizeof(float) != bytes.size()) throw std::invalid_argument("x has no whole rows");
  Program program(std::make_shared<ThreadPool>(threads), kernels_named(isa), std::make_shared<KvCache>(std::vector<KvCache::Shape>{}, 1, CacheFormat::Float16),
                  std::make_shared<StateCache>(std::vector<size_t>{}, 0), (int)rows);
  const int in = program.add_slot((int)columns), out = program.add_slot(matrix->rows());
  std::vector<Linear::Part> parts{{matrix, nullptr, out}};
  program.add_step(std::make_unique<Linear>(in, nullptr, 0, std::move(parts), false, precise));
  nb::gil_scoped_release release;
  program.run_rows((int)rows, in, reinterpret_cast<const float*>(bytes.data()), prompt);
  std::vector<float> result(rows * matrix->rows());
  for (size_t r = 0; r < rows; ++r)
    memcpy(result.data() + r * matrix->rows(), program.slot(out).row((int)r), sizeof(float) * matrix->rows());
  nb::gil_scoped_acquire acquire;
  return to_python(std::move(result), rows, matrix->rows());
}

CacheFormat cache_format_named(std::string_view name) {
  if (name == "float16") return CacheFormat::Float16;
  if (name == "float32") return CacheFormat::Float32;
  if (name == "int8") return CacheFormat::Int8;
  throw std::invalid_argument("a cache holds no " + std::string(name));
}

Activation activation_named(std::string_view name) {
  if (name == "silu") return Activation::Silu;
  if (name == "gelu_tanh") return Activation::GeluTanh;
  if (name == "sigmoid") return Activation::Sigmoid;
  if (name == "clamped_silu") return Activation::ClampedSilu;
  throw std::invalid_argument("there is no activation " + std::string(name));
}

using ExpertTuple = std::tuple<std::shared_ptr<Matrix>, std::shared_ptr<Matrix>, std::shared_ptr<Matrix>, Vector, Vector, Vector>;
using SliceTuple = std::tuple<int, int, const BlockTable*, bool, bool, int, int, int>;
using DrawTuple = std::tuple<Sampler*, int, std::vector<int32_t>, std::optional<nb::bytes>, int>;
using LogprobsTuple = std::tuple<float, std::vector<std::pair<int32_t, float>>>;

void run(Program& program, std::vector<int> token_ids, const std::vector<SliceTuple>& slices, std::vector<int> logit_rows,
         bool headless) {
  Batch batch{std::move(token_ids), {}, std::move(logit_rows), headless};
  for (const auto& [start, count, blocks, is_prompt, is_long, state, checkpoint, checkpoint_tokens] : slices)
    batch.slices.push_back({start, count, blocks, is_prompt, is_long, state, checkpoint, checkpoint_tokens});
  nb::gil_scoped_release release;
  program.run(batch);
}

std::span<const uint8_t> bits_of(const std::optional<nb::bytes>& allowed) {
  if (!allowed) return {};
  return {reinterpret_cast<const uint8_t*>(allowed->c_str()), allowed->size()};
}

// Of each draw: its tokens, and their logprobs where they were asked for.
std::vector<std::tuple<std::vector<int32_t>, std::vector<LogprobsTuple>>> draw(Program& program, int slot,
                                                                              const std::vector<DrawTuple>& draws) {
  std::vector<Draw> all;
  for (const auto& [sampler, first_row, guesses, allowed, num_logprobs] : draws)
    all.push_back({sampler, first_row, guesses, bits_of(allowed), num_logprobs});
  std::vector<Drawn> drawn;
  {
    nb::gil_scoped_release release;
    drawn = program.draw(slot, all);
  }
  std::vector<std::tuple<std::vector<int32_t>, std::vector<LogprobsTuple>>> found;
  for (Drawn& one : drawn) {
    std::vector<LogprobsTuple> logprobs;
    for (Logprobs& of_token : one.logprobs) logprobs.emplace_back(of_token.sampled, std::move(of_token.best));
    found.emplace_back(std::move(one.token_ids), std::move(logprobs));
  }
  return found;
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Kernels of the built-in CPU engine.";
  nb::set_leak_warnings(false);

  nb::class_<ThreadPool>(m, "ThreadPool")
      .def(nb::init<int>(), "num_threads"_a)
      .def_prop_ro("num_threads", &ThreadPool::num_threads);

  nb::class_<PaddedRow>(m, "Vector");

  nb::class_<Matrix>(m, "Matrix")
      .def(nb::new_(&make_matrix), "format"_a, "data"_a, "rows"_a, "columns"_a, "pool"_a.none() = nb::none())
      .def_prop_ro("format", [](const Matrix& matrix) { return info(matrix.format()).name; })
      .def_prop_ro("rows", &Matrix::rows)
      .def_prop_ro("columns", &Matrix::columns)
      .def_prop_ro("nbytes", &Matrix::num_bytes)
      .def("to_vector", &make_vector, "offset"_a = 0.0f)
      .def("unpack", &unpack);
  m.def("unpack", [](std::string_view format, nb::handle data, int rows, int columns) {
    return unpack(*make_matrix(format, data, rows, columns, nullptr));
  }, "format"_a, "data"_a, "rows"_a, "columns"_a);
  bind_parts(m);
  m.def("quantize", &quantized, "format"_a, "data"_a, "to"_a, "pool"_a);
  m.def("divergence", &divergence, "expected"_a, "actual"_a, "targets"_a, "pool"_a);
  m.def("checksum", &checksum_of, "data"_a, "pool"_a);
  m.def("matmul", &matmul, "matrix"_a, "x"_a, "threads"_a = 1, "isa"_a = "", "precise"_a = false, "prompt"_a = false);

  nb::class_<KvCache>(m, "KvCache")
      .def(nb::new_([](const std::vector<std::tuple<int, int>>& layers, int num_blocks, std::string_view dtype) {
             std::vector<KvCache::Shape> shapes;
             for (const auto& [num_heads, head_dim] : layers) shapes.push_back({num_heads, head_dim});
             return std::make_shared<KvCache>(shapes, num_blocks, cache_format_named(dtype));
           }),
           "layers"_a, "num_blocks"_a, "dtype"_a)
      .def_prop_ro("num_blocks", &KvCache::num_blocks)
      .def_prop_ro("block_bytes", &KvCache::block_bytes)
      .def("copy", &KvCache::copy, "from_"_a, "to"_a)
      .def("read", [](const KvCache& cache, const BlockTable& blocks, int count) {
             nb::bytes all(nullptr, count * cache.block_bytes());
             auto* out = reinterpret_cast<uint8_t*>(PyBytes_AS_STRING(all.ptr()));
             for (int i = 0; i < count; ++i)
               memcpy(out + i * cache.block_bytes(), cache.block(blocks.at(i)).data(), cache.block_bytes());
             return all;
           }, "blocks"_a, "count"_a)
      .def("write", [](const KvCache& cache, const BlockTable& blocks, nb::handle data) {
             const Bytes bytes(data);
             if (bytes.size() % cache.block_bytes() != 0) throw std::invalid_argument("the cache holds whole blocks only");
             for (size_t i = 0; i < bytes.size() / cache.block_bytes(); ++i)
               memcpy(cache.block(blocks.at((int)i)).data(), bytes.data() + i * cache.block_bytes(), cache.block_bytes());
           }, "blocks"_a, "data"_a)
      .def("discard", &KvCache::discard, "block"_a);

  nb::class_<BlockTable>(m, "BlockTable")
      .def(nb::init<std::shared_ptr<const KvCache>>(), "cache"_a)
      .def("__len__", &BlockTable::size)
      .def("__getitem__", &BlockTable::at, "index"_a)
      .def("append", &BlockTable::append, "block"_a)
      .def("replace", &BlockTable::replace, "index"_a, "block"_a)
      .def("cut", &BlockTable::cut, "size"_a);

  nb::class_<StateCache>(m, "StateCache")
      .def(nb::init<const std::vector<size_t>&, int>(), "layers"_a, "num_slots"_a)
      .def_prop_ro("num_layers", &StateCache::num_layers)
      .def_prop_ro("num_slots", &StateCache::num_slots)
      .def_prop_ro("slot_bytes", &StateCache::slot_bytes)
      .def("copy", &StateCache::copy, "from_"_a, "to"_a)
      .def("read", [](const StateCache& states, int slot) {
             return nb::bytes(reinterpret_cast<const char*>(states.whole(slot).data()), states.slot_bytes());
           }, "slot"_a)
      .def("write", [](const StateCache& states, int slot, nb::handle data) {
             const Bytes bytes(data);
             if (bytes.size() != states.slot_bytes()) throw std::invalid_argument("a state has another size");
             memcpy(states.whole(slot).data(), bytes.data(), bytes.size());
           }, "slot"_a, "data"_a)
      .def("discard", &StateCache::discard, "slot"_a);

  nb::class_<Program>(m, "Program")
      .def(nb::new_([](std::shared_ptr<ThreadPool> pool, std::shared_ptr<KvCache> cache, std::shared_ptr<StateCache> states,
                       int max_rows, std::string_view isa) {
             return std::make_shared<Program>(std::move(pool), kernels_named(isa), std::move(cache), std::move(states), max_rows);
           }),
           "pool"_a, "cache"_a, "states"_a, "max_rows"_a, "isa"_a = "")
      .def("add_rope", &Program::add_rope, "frequencies"_a, "long_frequencies"_a, "magnitude"_a)
      .def("add_slot", &Program::add_slot, "width"_a)
      .def("embed", [](Program& p, std::shared_ptr<Matrix> table, int out, float scale) { p.add_step(std::make_unique<Embed>(table, out, scale)); },
           "table"_a, "out"_a, "scale"_a = 1.0f)
      .def("linear",
           [](Program& p, int in, Vector norm, float eps,
              const std::vector<std::tuple<std::shared_ptr<Matrix>, Vector, int>>& parts, bool accumulate,
              bool precise) {
             std::vector<Linear::Part> all;
             for (const auto& [weights, bias, out] : parts) all.push_back({weights, bias, out});
             p.add_step(std::make_unique<Linear>(in, norm, eps, std::move(all), accumulate, precise));
           },
           "in_"_a, "norm"_a.none(), "eps"_a, "parts"_a, "accumulate"_a, "precise"_a)
      .def("gated",
           [](Program& p, int in, Vector norm, float eps, std::shared_ptr<Matrix> gate, std::shared_ptr<Matrix> up,
              std::string_view activation, int out) {
             p.add_step(std::make_unique<Gated>(in, norm, eps, gate, up, activation_named(activation), out));
           },
           "in_"_a, "norm"_a.none(), "eps"_a, "gate"_a, "up"_a, "activation"_a, "out"_a)
      .def("experts",
           [](Program& p, int in, Vector norm, float eps, int router, int shared_gate, const std::vector<ExpertTuple>& experts,
              int num_chosen, bool renormalized, float scale, std::vector<float> expert_scales, bool sigmoid,
              std::vector<float> choice_biases, int num_groups, int num_chosen_groups, std::string_view activation, int out,
              bool accumulate) {
             std::vector<Expert> all;
             for (const auto& [gate, up, down, gate_bias, up_bias, down_bias] : experts)
               all.push_back({gate, up, down, gate_bias, up_bias, down_bias});
             p.add_step(std::make_unique<Experts>(in, norm, eps, router, shared_gate, std::move(all),
                                                  Routing{num_chosen, renormalized, scale, std::move(expert_scales), sigmoid,
                                                          std::move(choice_biases), num_groups, num_chosen_groups},
                                                  activation_named(activation), out,
                                                  accumulate, p.expert_scratch()));
           },
           "in_"_a, "norm"_a.none(), "eps"_a, "router"_a, "shared_gate"_a, "experts"_a, nb::kw_only(), "num_chosen"_a,
           "renormalized"_a, "scale"_a, "expert_scales"_a, "sigmoid"_a, "choice_biases"_a, "num_groups"_a,
           "num_chosen_groups"_a, "activation"_a, "out"_a, "accumulate"_a)
      .def("attention",
           [](Program& p, int queries, int keys, int values, int out, int layer, int num_heads, int num_kv_heads, int head_dim,
              float scale, float temperature, int temperature_length, float softcap, int window, int rope, bool interleaved,
              Vector query_norm, Vector key_norm, Vector value_norm, float norm_eps, bool gated, Vector sinks) {
             p.add_attention(queries, keys, values, out,
                             {layer, num_heads, num_kv_heads, head_dim, scale, temperature, temperature_length, softcap, window,
                              rope, interleaved, query_norm, key_norm, value_norm, norm_eps, gated, sinks});
           },
           "queries"_a, "keys"_a, "values"_a, "out"_a, nb::kw_only(), "layer"_a, "num_heads"_a, "num_kv_heads"_a, "head_dim"_a,
           "scale"_a, "temperature"_a, "temperature_length"_a, "softcap"_a, "window"_a, "rope"_a, "interleaved"_a,
           "query_norm"_a.none(), "key_norm"_a.none(), "value_norm"_a.none(), "norm_eps"_a, "gated"_a, "sinks"_a.none())
      .def("delta_net",
           [](Program& p, int channels, int gate, int beta, int alpha, int out, int layer, int num_key_heads, int num_value_heads,
              int key_dim, int value_dim, bool tiled, std::shared_ptr<Matrix> convolution, std::vector<float> decays,
              std::vector<float> biases, Vector norm, float eps) {
             DeltaNetOptions options{layer, num_key_heads, num_value_heads, key_dim, value_dim, tiled, convolution,
                                     std::move(decays), std::move(biases), norm, eps};
             p.add_step(std::make_unique<DeltaNet>(DeltaNet::Slots{channels, gate, beta, alpha, out}, std::move(options)));
           },
           "channels"_a, "gate"_a, "beta"_a, "alpha"_a, "out"_a, nb::kw_only(), "layer"_a, "num_key_heads"_a,
           "num_value_heads"_a, "key_dim"_a, "value_dim"_a, "tiled"_a, "convolution"_a, "decays"_a, "biases"_a, "norm"_a, "eps"_a)
      .def("select", [](Program& p, int in, int out) { p.add_step(std::make_unique<Select>(in, out)); }, "in_"_a, "out"_a)
      .def("norm_groups", [](Program& p, int slot, Vector weight, int group, float eps) {
             p.add_step(std::make_unique<NormGroups>(slot, weight, group, eps));
           }, "slot"_a, "weight"_a, "group"_a, "eps"_a)
      .def("regroup", [](Program& p, const std::vector<std::tuple<int, int, int, int>>& parts, int num_groups, int width, int out) {
             std::vector<Regroup::Part> all;
             for (const auto& [slot, stride, first, count] : parts) all.push_back({slot, stride, first, count});
             p.add_step(std::make_unique<Regroup>(std::move(all), num_groups, width, out));
           }, "parts"_a, "num_groups"_a, "width"_a, "out"_a)
      .def("gate", [](Program& p, int gate, std::string_view activation, int in, int first) {
             p.add_step(std::make_unique<Gate>(gate, activation_named(activation), in, first));
           }, "gate"_a, "activation"_a, "in_"_a, "first"_a)
      .def("scale", [](Program& p, int slot, float factor) { p.add_step(std::make_unique<Scale>(slot, factor)); },
           "slot"_a, "factor"_a)
      .def("add", [](Program& p, int in, int out, Vector norm, float eps) {
             p.add_step(std::make_unique<Add>(in, norm, eps, out));
           }, "in_"_a, "out"_a, "norm"_a.none() = nb::none(), "eps"_a = 0.0f)
      .def("softcap", [](Program& p, int slot, float cap) { p.add_step(std::make_unique<Softcap>(slot, cap)); },
           "slot"_a, "cap"_a)
      .def("run", &run, "token_ids"_a, "slices"_a, "logit_rows"_a, "headless"_a = false)
      .def("draw", &draw, "slot"_a, "draws"_a)
      .def("add_up", [](const Program& p, int slot, const PaddedRow& norm, float eps, int first, int end) {
             return p.add_up(slot, norm, eps, first, end);
           }, "slot"_a, "norm"_a, "eps"_a, "first"_a, "end"_a)
      .def("read", [](const Program& p, int slot, int rows) {
             const Slot& s = p.slot(slot);
             if (rows < 0 || rows > p.max_rows()) throw std::invalid_argument("a program holds no such number of rows");
             std::vector<float> values((size_t)rows * s.width);
             for (int r = 0; r < rows; ++r) memcpy(values.data() + (size_t)r * s.width, s.row(r), sizeof(float) * s.width);
             return to_python(std::move(values), rows, s.width);
           }, "slot"_a, "rows"_a)
      .def("set_profiling", &Program::set_profiling, "on"_a)
      .def_prop_ro("profile", &Program::profile);

  nb::class_<Sampler>(m, "Sampler")
      .def("__init__",
           [](Sampler* self, bool greedy, float temperature, int top_k, float top_p, float min_p, float repetition_penalty,
              float presence_penalty, float frequency_penalty, std::vector<std::pair<int32_t, float>> logit_bias,
              uint64_t seed, int vocab_size) {
             new (self) Sampler({greedy, temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty,
                                 frequency_penalty, std::move(logit_bias), seed}, vocab_size);
           },
           nb::kw_only(), "greedy"_a, "temperature"_a, "top_k"_a, "top_p"_a, "min_p"_a, "repetition_penalty"_a,
           "presence_penalty"_a, "frequency_penalty"_a, "logit_bias"_a, "seed"_a, "vocab_size"_a)
      .def("set_prompt", [](Sampler& s, const std::vector<int32_t>& ids) { s.set_prompt(ids); }, "token_ids"_a)
      .def("sample", [](Sampler& s, nb::handle logits, const std::optional<nb::bytes>& allowed) {
             const Bytes bytes(logits);
             return s.sample(bytes.floats(), bits_of(allowed));
           }, "logits"_a, "allowed"_a.none() = nb::none());

  m.def("available_isas", [] {
    std::vector<std::string> names;
    for (const Kernels* kernels : available_kernels()) names.emplace_back(kernels->name);
    return names;
  });
  m.def("dot_peak", [](int num_threads, std::string_view isa) { return dot_peak(num_threads, *kernels_named(isa)); },
        "num_threads"_a, "isa"_a = "", nb::call_guard<nb::gil_scoped_release>());
  m.def("read_bandwidth", &read_bandwidth, "num_threads"_a, "num_bytes"_a, nb::call_guard<nb::gil_scoped_release>());
}
