#include "core/autograd/recompute.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/autograd/backward.h"

namespace tessera {
namespace {

class RecomputeOp final : public Op {
 public:
  RecomputeOp(std::vector<Tensor> inputs, std::function<Var(std::span<const Var>)> f)
      : inputs_(std::move(inputs)), f_(std::move(f)), module_(ModuleScope::current()) {}
  std::string_view name() const override { return "recompute"; }

  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    std::vector<Var> leaves;
    for (const Tensor& input : inputs_) leaves.emplace_back(input, needs[static_cast<int>(leaves.size())]);
    {
      const EnableGrad recording;
      const ModuleScope scope(module_);
      tessera::backward(f_(leaves), grad_y);
    }
    Grads grads;
    for (const Var& leaf : leaves) grads.push_back(leaf.grad());
    return grads;
  }

 private:
  std::vector<Tensor> inputs_;
  std::function<Var(std::span<const Var>)> f_;
  ModulePath module_;
};

}  // namespace

Var recompute(std::span<const Var> inputs, std::function<Var(std::span<const Var>)> f) {
  if (!grad_enabled() || std::ranges::none_of(inputs, &Var::requires_grad)) return f(inputs);
  std::vector<Tensor> values;
  for (const Var& input : inputs) values.push_back(input.value());
  Tensor y;
  {
    const NoGrad no_grad;
    std::vector<Var> constants;
    for (const Tensor& value : values) constants.emplace_back(value);
    y = f(constants).value();
  }
  return record(std::make_unique<RecomputeOp>(std::move(values), std::move(f)), inputs, std::move(y));
}

}  // namespace tessera
