#include "core/autograd/recompute.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/autograd/backward.h"

namespace tessera {
namespace {

class RecomputeOp final : public Op {
 public:
  // others: number of recorded inputs after these. They are leaves that f reads itself; the inner sweep stores their gradients,
  // as it does for all leaves in `inside`.
  RecomputeOp(std::vector<Tensor> inputs, std::function<Var(std::span<const Var>)> f, std::size_t others = 0,
              std::vector<std::shared_ptr<Node>> inside = {})
      : inputs_(std::move(inputs)),
        f_(std::move(f)),
        others_(others),
        inside_(std::move(inside)),
        module_(ModuleScope::current()) {}
  std::string_view name() const override { return "recompute"; }
  std::span<const std::shared_ptr<Node>> leaves_inside() const override { return inside_; }

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
    grads.resize(grads.size() + others_);
    return grads;
  }

 private:
  std::vector<Tensor> inputs_;
  std::function<Var(std::span<const Var>)> f_;
  std::size_t others_;
  std::vector<std::shared_ptr<Node>> inside_;
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

Var recompute(const Var& x, std::span<const Var> parameters, std::function<Var(const Var&)> f) {
  const auto trained = std::ranges::find_if(parameters, &Var::requires_grad);
  if (!grad_enabled() || (!x.requires_grad() && trained == parameters.end())) return f(x);
  Tensor y = f(Var(x.value(), x.requires_grad())).value();
  std::vector<Var> inputs{x};
  if (trained != parameters.end()) inputs.push_back(*trained);  // so that the op is recorded even if x needs no gradient
  std::vector<std::shared_ptr<Node>> inside;
  for (const Var& parameter : parameters) inside.push_back(parameter.node());
  auto op = std::make_unique<RecomputeOp>(
      std::vector<Tensor>{x.value()}, [f = std::move(f)](std::span<const Var> leaves) { return f(leaves.front()); },
      inputs.size() - 1, std::move(inside));
  return record(std::move(op), inputs, std::move(y));
}

}  // namespace tessera
