#include "core/ops/sparse_product_cuda.h"

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/cuda/libraries/epilogue.h"
#include "core/cuda/sparse/product.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/device/device_choice.h"
#include "core/device/device_info.h"
#include "core/device/plan_cache.h"
#include "core/device/precision.h"
#include "core/ops/sparse_by_dense.h"
#include "core/ops/sparse_choice.h"

namespace tessera::cuda {
namespace {

using cpu::sparse::Window;
using sparse::Walk;

thread_local std::map<std::string, std::size_t> runs;

// Outside a DecisionScope, nothing is prepared for kernels that would not run.
bool may_choose(const SparseCall& call) {
  return decisions_active() && (call.geometry.flops() >= kLeastFlopsToMeasure || choice_is_forced());
}

std::string key_of(const SparseCall& call, std::int64_t pieces, Device device) {
  const bool tf32 = call.dtype == DType::f32 && tf32_products();
  return str("cuda.sparse.", name_of(call.pass), ' ', call.weight.shape().rank() == 2 ? "linear " : "conv2d ",
             describe(call.geometry), " kept", call.weight.count(), " pieces", pieces, ' ', tf32 ? "tf32" : name_of(call.dtype),
             call.relu ? " relu" : "", ConstantWeights::current() != nullptr ? " constant" : "", ' ', chip_name(device));
}

// The ways to compute one product. Without a clock the first one runs, the libraries' kernels: ours were never timed.
struct Ways {
  std::vector<std::string> names;
  std::vector<std::function<void()>> runs;
  std::int64_t pieces = 0;  // pieces of rows that keep the same columns

  void add(const char* name, std::function<void()> run) {
    names.emplace_back(name);
    runs.push_back(std::move(run));
  }
  // Adds our own kernels, if they can count the pixels: row by row, and in pieces if rows keep the same columns.
  template <class Run>
  void add_own(const Window& window, const sparse::Matrix& matrix, const Run& run) {
    if (!sparse::fits(window)) return;
    add("sparse", [&matrix, run] { run(matrix, Walk::rows); });
    pieces = matrix.pieces.dim(0);
    if (pieces > 0) add("pieces", [&matrix, run] { run(matrix, Walk::pieces); });
  }
};

void by_choice(const SparseCall& call, Device device, const Ways& ways) {
  const auto run = [&](std::size_t i) {
    ++runs[ways.names[i]];
    ways.runs[i]();
  };
  if (ways.names.size() == 1) return run(0);
  thread_local PlanCache<std::size_t> cache;
  std::vector<std::int64_t> key = call.cache_key();
  key.push_back(device.index());
  key.push_back(tf32_products());
  const auto chosen = cache.get(std::move(key), [&] {
    return std::make_unique<std::size_t>(choose_on(device, key_of(call, ways.pieces, device), ways.names, run));
  });
  run(*chosen);
}

}  // namespace

std::size_t sparse_runs(const std::string& way) { return runs[way]; }

void sparse_forward(const Tensor& x, const Tensor& values, const SparseWeight& weight, const Tensor& bias, const Tensor& y,
                    const Conv2dOptions& options, bool relu) {
  if (y.numel() == 0) return;
  const SparseCall call{Conv2dPass::forward, sparse_geometry(x, weight, y, options), weight, x.dtype(), relu};
  const Window window(call.geometry, call.pass);
  Ways ways;
  ways.add("dense", [&] { sparse_forward_by_dense(x, values, weight, bias, y, options, relu); });
  if (may_choose(call)) {
    ways.add_own(window, weight.row_matrix(x.device()), [&](const sparse::Matrix& matrix, Walk walk) {
      sparse::multiply(matrix, walk, values, window, x, bias, relu, y);
    });
  }
  by_choice(call, x.device(), ways);
}

void sparse_backward_input(const Tensor& grad_y, const Tensor& values, const SparseWeight& weight, const Tensor& grad_x,
                           const Conv2dOptions& options) {
  if (grad_x.numel() == 0) return;
  const SparseCall call{Conv2dPass::backward_input, sparse_geometry(grad_x, weight, grad_y, options), weight, grad_y.dtype()};
  const Window window(call.geometry, call.pass);
  Ways ways;
  ways.add("dense", [&] { sparse_backward_input_by_dense(grad_y, values, weight, grad_x, options); });
  if (may_choose(call)) {
    ways.add_own(window, weight.column_matrix(grad_y.device()), [&](const sparse::Matrix& matrix, Walk walk) {
      sparse::multiply(matrix, walk, values, window, grad_y, {}, false, grad_x);
    });
  }
  by_choice(call, grad_y.device(), ways);
}

void sparse_backward_values(const Tensor& x, const Tensor& grad_y, const SparseWeight& weight, const Tensor& grad_values,
                            const Tensor& grad_bias, const Conv2dOptions& options) {
  const SparseCall call{Conv2dPass::backward_weight, sparse_geometry(x, weight, grad_y, options), weight, x.dtype()};
  const Window window(call.geometry, Conv2dPass::forward);
  Ways ways;
  ways.add("dense", [&] { sparse_backward_values_by_dense(x, grad_y, weight, grad_values, grad_bias, options); });
  if (may_choose(call)) {
    ways.add_own(window, weight.row_matrix(x.device()), [&](const sparse::Matrix& matrix, Walk walk) {
      sparse::gradient(matrix, walk, window, x, grad_y, grad_values);
      if (grad_bias.defined()) column_sums(grad_y.reshape({window.positions(), weight.shape()[0]}), grad_bias);
    });
  }
  by_choice(call, x.device(), ways);
}

}  // namespace tessera::cuda
