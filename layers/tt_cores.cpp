#include "layers/tt_cores.h"

#include <cmath>

#include "core/linalg/tt.h"
#include "core/ops/matmul.h"
#include "core/ops/view.h"
#include "core/support/error.h"
#include "layers/init.h"

namespace tessera {

std::vector<Shape> core_shapes(std::span<const std::int64_t> modes, std::span<const std::int64_t> ranks) {
  std::vector<Shape> shapes;
  for (std::size_t k = 0; k < modes.size(); ++k) {
    shapes.push_back({k == 0 ? 1 : ranks[k - 1], modes[k], k + 1 == modes.size() ? 1 : ranks[k]});
  }
  return shapes;
}

void TtCores::set(std::span<const Tensor> values) {
  TESSERA_CHECK(values.size() == cores_.size(), ShapeError, "tensor train: ", values.size(), " cores; needs ", cores_.size());
  for (std::size_t k = 0; k < values.size(); ++k) cores_[k]->set_value(values[k]);
}

void TtCores::set_trainable(bool trainable) {
  for (Parameter* core : cores_) core->set_trainable(trainable);
}

void TtCores::draw(std::uint64_t seed, const std::string& path, double variance) {
  double log_variance = std::log(variance);
  for (std::size_t k = 1; k < cores_.size(); ++k) log_variance -= std::log(static_cast<double>(cores_[k]->value().dim(0)));
  const double deviation = std::exp(log_variance / (2 * static_cast<double>(cores_.size())));
  for (Parameter* core : cores_) init_normal(*core, RngStream(seed, path, core->name()), deviation);
}

Tensor TtCores::composed() const {
  linalg::TensorTrain train;
  for (const Parameter* core : cores_) train.cores.push_back(core->value());
  return linalg::reconstruct(train);
}

std::vector<Var> TtCores::vars() const {
  std::vector<Var> vars;
  for (const Parameter* core : cores_) vars.push_back(core->var());
  return vars;
}

Var joined_cores(std::span<const Var> cores) {
  const auto matrix = [](const Var& core, std::int64_t rows) { return reshape(core, {rows, core.shape().numel() / rows}); };
  Var product;
  for (const Var& core : cores) {
    product = product.defined() ? matmul(product, matrix(core, core.shape()[0])) : core;
    product = matrix(product, product.shape().numel() / core.shape()[2]);
  }
  return product;
}

std::vector<TorchPart> TtCores::torch_tensors(bool bias, bool fixes_features) const {
  std::vector<TorchPart> parts;
  for (std::size_t k = 0; k < cores_.size(); ++k) {
    parts.push_back({.tensor = cores_[k]->name(), .name = str("cores.", k), .fixes_features = fixes_features});
  }
  if (bias) parts.push_back({.tensor = "bias", .name = "bias"});
  return parts;
}

}  // namespace tessera
