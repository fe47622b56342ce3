#include "layers/batch_norm.h"

#include <cmath>
#include <vector>

#include "core/comm/shared_statistics.h"
#include "core/config/read.h"
#include "core/ops/arithmetic.h"
#include "core/ops/batch_norm.h"
#include "core/ops/relu.h"
#include "layers/init.h"

namespace tessera {

void BatchNormConfig::fields(Fields& f) {
  f.add("channels", channels, {.help = "size of the last axis", .range = at_least(1), .example = "64", .observable = "plan"});
  f.add("momentum", momentum, {.help = "weight of the new batch in the running statistics", .range = unit_interval});
  f.add("eps", eps, {.help = "added to the variance", .range = positive});
}

BatchNorm::BatchNorm(const BatchNormConfig& config)
    : config_(config),
      weight_(add_parameter("weight", Tensor::full({config.channels}, 1), ParameterRole::norm)),
      bias_(add_parameter("bias", Tensor::zeros({config.channels}), ParameterRole::norm)),
      running_mean_(add_buffer("running_mean", Tensor::zeros({config.channels}))),
      running_var_(add_buffer("running_var", Tensor::full({config.channels}, 1))) {}

Value BatchNorm::config() const { return write(config_); }

Var BatchNorm::add_relu(const Var& x, const Var& residual, const Context& context) {
  return run(x, [&] { return normalize(x, residual, true, context); });
}

Var BatchNorm::normalize(const Var& x, const Var& residual, bool relu, const Context& context) {
  BatchNormOptions options{.training = context.training,
                           .momentum = config_.momentum,
                           .eps = config_.eps,
                           .relu = relu,
                           .ranks = context.training ? SharedStatistics::current() : nullptr};
  if (renewed_batches_ && !context.training) {
    options.training = true;
    options.momentum = 1.0 / static_cast<double>(++*renewed_batches_);  // the first batch replaces the old statistics
  }
  return batch_norm(x, weight_.var(), bias_.var(), running_mean_.value, running_var_.value, options, residual);
}

BatchNorm::Map BatchNorm::inference_map() const {
  const auto exact = [](const Tensor& value) { return value.to(Device::cpu()).to(DType::f64); };
  Map map{exact(weight_.value()).clone(), exact(bias_.value()).clone()};
  const Tensor mean = exact(running_mean_.value);
  const Tensor var = exact(running_var_.value);
  for (std::int64_t c = 0; c < config_.channels; ++c) {
    double& scale = map.scale.data<double>()[c];
    scale /= std::sqrt(var.data<double>()[c] + config_.eps);
    map.shift.data<double>()[c] -= mean.data<double>()[c] * scale;
  }
  return map;
}

bool renew_statistics(Module& model, const std::function<void()>& evaluate) {
  std::vector<BatchNorm*> norms;
  for_each_module(model, [&](Module& module) {
    if (auto* const norm = dynamic_cast<BatchNorm*>(&module)) norms.push_back(norm);
  });
  if (norms.empty()) return false;
  const auto set = [&](std::optional<std::int64_t> batches) {
    for (BatchNorm* const norm : norms) norm->renewed_batches_ = batches;
  };
  set(0);
  try {
    evaluate();
  } catch (...) {
    set({});
    throw;
  }
  set({});
  return true;
}

Var norm_add_relu(Module& norm, const Var& x, const Var& residual, const Context& context) {
  if (auto* const batch_norm = dynamic_cast<BatchNorm*>(&norm)) return batch_norm->add_relu(x, residual, context);
  const Var y = norm(x, context);
  return relu(residual.defined() ? add(y, residual) : y);
}

Shape BatchNorm::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() >= 2 && input.dim(-1) == config_.channels, ShapeError, "batch_norm '", path(), "': input is ", input,
                "; needs [..., ", config_.channels, "]");
  trace_leaf(trace, input, input, 0);
  return input;
}

void BatchNorm::reset_parameters(std::uint64_t) {
  init_constant(weight_, 1);
  init_constant(bias_, 0);
  running_mean_.value.fill(0);
  running_var_.value.fill(1);
}

}  // namespace tessera
