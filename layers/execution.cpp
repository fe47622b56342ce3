#include "layers/execution.h"

#include <omp.h>

#include <algorithm>

#include "core/autograd/backward.h"
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

// Runs one way on these operands; in training with its backward, which leaves the layer's own gradients alone.
void run_once(const Ways& ways, std::size_t i, std::span<const Var> operands, bool training) {
  if (!training) {
    ways.run(i, operands);
    return;
  }
  const EnableGrad recording;
  std::vector<Var> leaves;
  for (const Var& operand : operands) leaves.emplace_back(operand.value(), operand.requires_grad());
  const Var y = ways.run(i, leaves);
  backward(y, Tensor::full(y.shape(), 1, y.dtype(), y.device()));
}

}  // namespace

std::size_t Execution::choose(const Module& layer, std::span<const Var> operands, const std::function<Ways()>& ways) {
  const Var& x = operands.front();
  const bool training = grad_enabled() && std::ranges::any_of(operands, &Var::requires_grad);
  const Case now{x.shape(), x.dtype(), training, !grad_enabled() && ConstantWeights::current() != nullptr, tf32_products(),
                 decision_epoch()};
  if (!known_.empty() && known_.front().of.epoch != now.epoch) known_.clear();
  const auto found = std::ranges::find(known_, now, &Known::of);
  if (found != known_.end()) return found->way;
  const Ways offered = ways();
  std::size_t way = 0;
  if (offered.flops >= kLeastFlopsToMeasure) {
    const std::string machine =
        x.device().is_cpu() ? str("threads", omp_get_max_threads()) : TESSERA_BACKEND(x.device(), chip_name, x.device());
    const std::string key = str("execution ", layer.kind(), ' ', to_json(layer.config()), ' ', name_of(x.dtype()),
                                now.tf32 ? " tf32" : "", training ? " training" : "", now.constant ? " constant" : "", ' ', machine,
                                " x", x.shape());
    way = choose_on(x.device(), key, offered.names, [&](std::size_t i) { run_once(offered, i, operands, training); });
    if (recording_graph()) return way;  // no clock was read
  }
  known_.push_back({now, way});
  return way;
}

Var made_once(const std::shared_ptr<const void>& user, const Tensor& first, const std::function<Var()>& make) {
  ConstantWeights* const constant = grad_enabled() ? nullptr : ConstantWeights::current();
  if (constant == nullptr) return make();
  return Var(constant->derived(user, first, [&] { return make().value(); }));
}

}  // namespace tessera
