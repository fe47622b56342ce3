#include "layers/execution.h"

#include <omp.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/autograd/backward.h"
#include "core/autograd/recompute.h"
#include "core/config/value.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/device/device_choice.h"
#include "core/device/device_info.h"
#include "core/device/device_work.h"
#include "core/device/dispatch.h"
#include "core/device/precision.h"
#include "core/support/error.h"

namespace tessera {
namespace {

// Runs one way on these operands. In training it also runs the backward, which leaves the layer's own gradients unchanged.
void run_once(const Ways& ways, std::size_t i, std::span<const Var> operands, bool training, bool recomputed) {
  if (!training) {
    ways.run(i, operands);
    return;
  }
  const EnableGrad recording;
  std::vector<Var> leaves;
  for (const Var& operand : operands) leaves.emplace_back(operand.value(), operand.requires_grad());
  const auto run = [&](std::span<const Var> o) { return ways.run(i, o); };
  const Var y = recomputed ? recompute(leaves, run) : run(leaves);
  backward(y, Tensor::full(y.shape(), 1, y.dtype(), y.device()));
}

}  // namespace

// "execution tucker2_conv2d {...} f32 training frozen0 threads2 x[8, 14, 14, 256]"
std::string Execution::key_of(const Module& layer, const Case& of, Device device) {
  std::string key = str("execution ", layer.kind(), ' ', to_json(layer.config()), ' ', name_of(of.dtype), of.tf32 ? " tf32" : "",
                        of.training ? " training" : "", of.recompute ? " recomputed" : "", of.constant ? " constant" : "");
  for (std::size_t i = 0; i < of.frozen.size(); ++i) {
    if (of.frozen[i]) key += str(" frozen", i);
  }
  const std::string machine =
      device.is_cpu() ? str("threads", omp_get_max_threads()) : TESSERA_BACKEND(device, chip_name, device);
  return str(key, ' ', machine, " x", of.x);
}

std::size_t Execution::choose(const Module& layer, std::span<const Var> operands, bool recompute,
                              const std::function<Ways()>& ways) {
  const Var& x = operands.front();
  const bool training = grad_enabled() && std::ranges::any_of(operands, &Var::requires_grad);
  Case now{.x = x.shape(),
           .dtype = x.dtype(),
           .training = training,
           .constant = !grad_enabled() && ConstantWeights::current() != nullptr,
           .tf32 = tf32_products(),
           .recompute = training && recompute,
           .frozen = {},
           .epoch = decision_epoch()};
  if (training) {
    for (const Var& operand : operands) now.frozen.push_back(!operand.requires_grad());
  }
  if (!known_.empty() && known_.front().of.epoch != now.epoch) known_.clear();
  const auto found = std::ranges::find(known_, now, &Known::of);
  if (found != known_.end()) return found->way;
  const Ways offered = ways();
  std::size_t way = 0;
  if (offered.flops >= kLeastFlopsToMeasure) {
    // What the ways derive from constant weights for this measurement is not kept after it.
    const std::optional<ConstantWeights> scope = now.constant ? std::make_optional<ConstantWeights>() : std::nullopt;
    way = choose_on(x.device(), key_of(layer, now, x.device()), offered.names,
                    [&](std::size_t i) { run_once(offered, i, operands, training, now.recompute); });
    if (recording_graph()) return way;  // no clock was read while recording
  }
  known_.push_back({std::move(now), way});
  return way;
}

Var run_kept_or_recomputed(bool recompute, std::vector<Var> operands, const Var& bias,
                           const std::function<Var(std::span<const Var> operands, const Var& bias)>& f) {
  if (!recompute) return f(operands, bias);
  if (bias.defined()) operands.push_back(bias);
  return tessera::recompute(operands, [f, biased = bias.defined()](std::span<const Var> all) {
    return biased ? f(all.first(all.size() - 1), all.back()) : f(all, Var());
  });
}

Var made_once(const std::shared_ptr<const void>& user, const Tensor& first, const std::function<Var()>& make) {
  ConstantWeights* const constant = grad_enabled() ? nullptr : ConstantWeights::current();
  if (constant == nullptr) return make();
  return Var(constant->derived(user, first, [&] { return make().value(); }));
}

}  // namespace tessera
