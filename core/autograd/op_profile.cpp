#include "core/autograd/op_profile.h"

#include "core/support/module_scope.h"

namespace tessera::op_profile {
namespace {

std::int64_t bytes_of(const Tensor& tensor) { return static_cast<std::int64_t>(tensor.bytes()); }

}  // namespace

void forward(Profile& profile, const Op& op, std::span<const Var> inputs, const Tensor& y) {
  ProfiledWork work{.flops = 2 * op.multiply_adds(y.shape()), .bytes = bytes_of(y)};
  bool view = false;
  for (const Var& input : inputs) {
    work.bytes += bytes_of(input.value());
    view = view || input.value().shares_storage(y);
  }
  if (view) work.bytes = 0;
  profile.charge(ProfilePart::forward, op.name(), ModuleScope::current(), work);
}

void backward(Profile& profile, const Node& node, const Tensor& grad_y, NeedsGrad needs, const Grads& grads) {
  const int factors = int{needs[0]} + int{needs[node.inputs.size() > 1 ? 1 : 0]};
  std::int64_t written = 0;
  for (const Tensor& grad : grads) {
    if (grad.defined() && (!grad.shares_storage(grad_y) || node.op->writes_over_grad())) written += bytes_of(grad);
  }
  ProfiledWork work{.flops = 2 * factors * node.op->multiply_adds(grad_y.shape())};
  if (written > 0) {
    work.bytes = written + bytes_of(grad_y);
    for (const std::shared_ptr<Node>& input : node.inputs) work.bytes += bytes_of(input->value);
  }
  profile.charge(ProfilePart::backward, node.op->name(), node.module, work);
}

void added(Profile& profile, const Node& node, const Tensor& grad_y) {
  profile.charge(ProfilePart::backward, node.op->name(), node.module, {.bytes = 3 * bytes_of(grad_y)});
}

void sum(Profile& profile, const Node& node, const Tensor& total) {
  profile.charge(ProfilePart::backward, "accumulate", node.module, {.bytes = 3 * bytes_of(total)});
}

}  // namespace tessera::op_profile
