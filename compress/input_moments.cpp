#include "compress/input_moments.h"

#include <algorithm>
#include <cmath>

#include "core/finite.h"
#include "core/linalg/eigh.h"
#include "core/nn/forward_observer.h"
#include "core/ops/matmul.h"
#include "core/storage.h"
#include "core/support/error.h"
#include "layers/scores.h"

namespace tessera {
namespace {

constexpr double kLeastShare = 1e-4;  // of the mean second moment, added to each eigenvalue

struct Moments {
  Tensor sum;  // the sum of x x', f64 [in, in]
  std::int64_t rows = 0;
};

void add_rows(Moments& moments, const Module& module, const Tensor& x) {
  const std::int64_t in = x.dim(-1), rows = x.numel() / in;
  const Tensor matrix = x.to(DType::f32).contiguous().reshape({1, rows, in});
  const Tensor product = matmul(Var(matrix), Var(matrix), {.transpose_a = true}).value().reshape({in, in});
  TESSERA_CHECK(all_finite(product), NumericError, "layer '", module.path(),
                "': its inputs hold NaN or Inf, so that its weight cannot be decomposed by them");
  const Tensor host = product.to(Device::cpu()).to(DType::f64);
  if (!moments.sum.defined()) {
    // Besides the sum, memory is needed for its eigenvectors and for two roots.
    check_memory_limit(Device::cpu(), 6 * sizeof(double) * static_cast<std::size_t>(in * in),
                       str("layer '", module.path(), "': weighting ", in, " inputs"));
    moments.sum = Tensor::zeros({in, in}, DType::f64);
  }
  for (std::int64_t i = 0; i < host.numel(); ++i) moments.sum.data<double>()[i] += host.data<double>()[i];
  moments.rows += rows;
}

// vectors diag(values^power) vectors'
Tensor power_of(const linalg::Eigh& eigh, double power) {
  const std::int64_t n = eigh.values.numel();
  Tensor scaled = eigh.vectors.clone();
  for (std::int64_t i = 0; i < n * n; ++i) scaled.data<double>()[i] *= std::pow(eigh.values.data<double>()[i % n], power);
  return matmul(Var(scaled), Var(eigh.vectors), {.transpose_b = true}).value();
}

InputWeights weights_of(const Moments& moments) {
  const std::int64_t in = moments.sum.dim(0);
  Tensor mean = moments.sum.clone();
  double trace = 0;
  for (std::int64_t i = 0; i < in * in; ++i) mean.data<double>()[i] /= static_cast<double>(moments.rows);
  for (std::int64_t i = 0; i < in; ++i) trace += mean.data<double>()[i * (in + 1)];
  const double least = kLeastShare * trace / static_cast<double>(in);
  linalg::Eigh eigh = linalg::eigh(mean);
  // Rounding may make eigenvalues negative.
  for (std::int64_t i = 0; i < in; ++i) eigh.values.data<double>()[i] = std::max(eigh.values.data<double>()[i], 0.0) + least;
  return {power_of(eigh, 0.5), power_of(eigh, -0.5)};
}

bool is_zero(const Moments& moments) {
  for (std::int64_t i = 0; i < moments.sum.dim(0); ++i) {
    if (moments.sum.data<double>()[i * (moments.sum.dim(0) + 1)] > 0) return false;
  }
  return true;
}

}  // namespace

std::map<std::string, InputWeights> input_weights(Module& root, std::span<const std::string> paths,
                                                  const TrainingBatches& batches, std::int64_t count) {
  const NoGrad no_grad;
  std::map<std::string, Moments> moments;
  {
    const ForwardObserver observer([&](const Module& module, const Var& x) {
      if (std::ranges::find(paths, module.path()) != paths.end()) add_rows(moments[module.path()], module, x.value());
    });
    for (std::int64_t i = 0; i < count; ++i) scores(root, batches.parts(i), Context{}, batches.compute);
  }
  std::map<std::string, InputWeights> weights;
  for (const auto& [path, sums] : moments) {
    if (!is_zero(sums)) weights.emplace(path, weights_of(sums));
  }
  return weights;
}

}  // namespace tessera
