#include <omp.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/cpu/cache_sweep.h"
#include "core/cpu/in_f32.h"
#include "core/cpu/parallel.h"
#include "core/cpu/rows/problem.h"
#include "core/cpu/sparse/gradient.h"
#include "core/cpu/sparse/product.h"
#include "core/cpu/sparse/row_dots.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/device/plan_cache.h"
#include "core/ops/sparse_by_dense.h"
#include "core/ops/sparse_choice.h"

namespace tessera::cpu {
namespace {

// Up to this density the sparse kernels are taken if no clock decides.
constexpr double kSparseDensity = 0.25;

// A product with a few vectors waits for memory, not for multiplications. A choice therefore pays for far smaller products than
// kLeastFlopsToMeasure.
constexpr double kLeastRowFlopsToMeasure = 1e5;

std::string key_of(Conv2dPass pass, const Conv2dGeometry& g, const SparseWeight& weight, DType dtype, bool relu, bool constant) {
  return str("sparse.", name_of(pass), ' ', weight.shape().rank() == 2 ? "linear " : "conv2d ", describe(g), " kept",
             weight.count(), " pieces", weight.row_plan().pieces.size(), dtype == DType::f32 ? "" : str(' ', name_of(dtype)),
             relu ? " relu" : "", constant ? " constant" : "", " threads", omp_get_max_threads());
}

// Runs one product by `sparse` or by `dense`, whichever was chosen for its geometry.
template <class Sparse, class Dense>
void by_choice(Conv2dPass pass, const Conv2dGeometry& g, const SparseWeight& weight, DType dtype, bool relu, const Sparse& sparse,
               const Dense& dense) {
  if (dtype == DType::f64 || weight.count() == 0) return dense();
  const double density = static_cast<double>(weight.count()) / static_cast<double>(weight.shape().numel());
  const bool sparse_first = density <= kSparseDensity;
  const bool constant = ConstantWeights::current() != nullptr;
  const auto run = [&](std::size_t i) { (i == 0) == sparse_first ? sparse() : dense(); };
  const bool few = g.n * g.oh * g.ow <= sparse::kFewVectors;
  const bool small = g.flops() < (few ? kLeastRowFlopsToMeasure : kLeastFlopsToMeasure);
  if (!decisions_active() || (small && !choice_is_forced())) return run(0);
  thread_local PlanCache<std::size_t> cache;
  std::vector<std::int64_t> key = SparseCall{pass, g, weight, dtype, relu}.cache_key();
  key.push_back(omp_get_max_threads());
  const auto chosen = cache.get(std::move(key), [&] {
    // What a way derives from constant weights while it is timed is released afterwards.
    const std::optional<ConstantWeights> scope = constant ? std::make_optional<ConstantWeights>() : std::nullopt;
    CacheSweep sweep(constant && few && weight.shape().numel() * sizeof(float) >= kLeastSweptBytes);
    const std::vector<std::string> names{sparse_first ? "sparse" : "dense", sparse_first ? "dense" : "sparse"};
    const auto seconds = [&](std::size_t i) {
      sweep();
      return seconds_of(i, [&] { run(i); });
    };
    return std::make_unique<std::size_t>(decide(key_of(pass, g, weight, dtype, relu, constant), names, seconds));
  });
  run(*chosen);
}

void pack_values(const sparse::Plan& plan, const Tensor& values, float* packed) {
  const float* const from = values.data<float>();
  parallel_for(static_cast<std::int64_t>(plan.from.size()), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) packed[i] = from[plan.from[i]];
  });
}

// The values in the plan's order. Constant weights are packed once.
Tensor packed(const sparse::Plan& plan, const Tensor& values) {
  static const auto user = std::make_shared<const char>();
  const auto pack = [&] {
    const Tensor made = Tensor::empty(values.shape());
    pack_values(plan, values, made.data<float>());
    return made;
  };
  ConstantWeights* const constant = ConstantWeights::current();
  return constant == nullptr ? pack() : constant->derived(user, values, pack);
}

void forward(const Conv2dGeometry& g, const Tensor& x, const Tensor& values, const SparseWeight& weight, const Tensor& bias,
             const Tensor& y, bool relu) {
  if (y.dtype() == DType::bf16) {
    return in_f32([&](const Tensor& from, const Tensor& to) { forward(g, from, values, weight, bias, to, relu); }, y, x);
  }
  const float* const offset = bias.defined() ? bias.data<float>() : nullptr;
  if (g.is_pointwise() && g.n * g.oh * g.ow <= sparse::kFewVectors) {
    return sparse::multiply_few(rows::kernels(), weight.index(), weight.grouped_rows(), values.data<float>(), g.n * g.oh * g.ow,
                                x.data<float>(), offset, relu, y.data<float>());
  }
  const sparse::Plan& plan = weight.row_plan();
  sparse::multiply(sparse::kernels(), plan, packed(plan, values).data<float>(), {g, Conv2dPass::forward}, x.data<float>(), offset,
                   relu, y.data<float>());
}

void backward_input(const Conv2dGeometry& g, const Tensor& grad_y, const Tensor& values, const SparseWeight& weight,
                    const Tensor& grad_x) {
  if (grad_x.dtype() == DType::bf16) {
    return in_f32([&](const Tensor& from, const Tensor& to) { backward_input(g, from, values, weight, to); }, grad_x, grad_y);
  }
  const sparse::Plan& plan = weight.column_plan();
  const Tensor factors = Tensor::empty(values.shape());
  pack_values(plan, values, factors.data<float>());
  sparse::multiply(sparse::kernels(), plan, factors.data<float>(), {g, Conv2dPass::backward_input}, grad_y.data<float>(), nullptr,
                   false, grad_x.data<float>());
}

void backward_values(const Conv2dGeometry& g, const Tensor& x, const Tensor& grad_y, const SparseWeight& weight,
                     const Tensor& grad_values, const Tensor& grad_bias) {
  if (x.dtype() == DType::bf16) {
    return backward_values(g, x.to(DType::f32), grad_y.to(DType::f32), weight, grad_values, grad_bias);
  }
  sparse::gradient(sparse::kernels(), weight.gradient_plan(), {g, Conv2dPass::forward}, x.data<float>(), grad_y.data<float>(),
                   grad_values.data<float>());
  if (!grad_bias.defined()) return;
  rows::column_sums(rows::kernels(), g.n * g.oh * g.ow, g.out, grad_y.data<float>(), grad_bias.data<float>());
}

}  // namespace

void sparse_forward(const Tensor& x, const Tensor& values, const SparseWeight& weight, const Tensor& bias, const Tensor& y,
                    const Conv2dOptions& options, bool relu) {
  if (y.numel() == 0) return;
  const Conv2dGeometry g = sparse_geometry(x, weight, y, options);
  by_choice(
      Conv2dPass::forward, g, weight, x.dtype(), relu, [&] { forward(g, x, values, weight, bias, y, relu); },
      [&] { sparse_forward_by_dense(x, values, weight, bias, y, options, relu); });
}

void sparse_backward_input(const Tensor& grad_y, const Tensor& values, const SparseWeight& weight, const Tensor& grad_x,
                           const Conv2dOptions& options) {
  if (grad_x.numel() == 0) return;
  const Conv2dGeometry g = sparse_geometry(grad_x, weight, grad_y, options);
  by_choice(
      Conv2dPass::backward_input, g, weight, grad_y.dtype(), false, [&] { backward_input(g, grad_y, values, weight, grad_x); },
      [&] { sparse_backward_input_by_dense(grad_y, values, weight, grad_x, options); });
}

void sparse_backward_values(const Tensor& x, const Tensor& grad_y, const SparseWeight& weight, const Tensor& grad_values,
                            const Tensor& grad_bias, const Conv2dOptions& options) {
  const Conv2dGeometry g = sparse_geometry(x, weight, grad_y, options);
  by_choice(
      Conv2dPass::backward_weight, g, weight, x.dtype(), false,
      [&] { backward_values(g, x, grad_y, weight, grad_values, grad_bias); },
      [&] { sparse_backward_values_by_dense(x, grad_y, weight, grad_values, grad_bias, options); });
}

void scatter_values(const Tensor& values, const Tensor& positions, const Tensor& dense) {
  dense.fill(0);
  const std::int64_t* const at = positions.data<std::int64_t>();
  dispatch_real(values.dtype(), "scatter_values", [&]<class T>() {
    const T* const from = values.data<T>();
    T* const to = dense.data<T>();
    parallel_for(values.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[at[i]] = from[i];
    });
  });
}

void gather_values(const Tensor& dense, const Tensor& positions, const Tensor& values) {
  const std::int64_t* const at = positions.data<std::int64_t>();
  dispatch_real(values.dtype(), "gather_values", [&]<class T>() {
    const T* const from = dense.data<T>();
    T* const to = values.data<T>();
    parallel_for(values.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = from[at[i]];
    });
  });
}

}  // namespace tessera::cpu
