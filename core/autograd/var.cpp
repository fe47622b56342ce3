#include "core/autograd/var.h"

#include <atomic>
#include <utility>

#include "core/autograd/numeric_check.h"
#include "core/autograd/op_profile.h"
#include "core/support/error.h"

namespace tessera {
namespace {

thread_local bool recording = true;

std::uint64_t next_sequence() noexcept {
  static std::atomic<std::uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Node::Node(Tensor v, bool needs_grad) : value(std::move(v)), sequence(next_sequence()), requires_grad(needs_grad) {}

Node::~Node() {
  std::vector<std::shared_ptr<Node>> pending = std::move(inputs);
  while (!pending.empty()) {
    const std::shared_ptr<Node> node = std::move(pending.back());
    pending.pop_back();
    if (node.use_count() == 1) {
      for (std::shared_ptr<Node>& input : node->inputs) pending.push_back(std::move(input));
      node->inputs.clear();
    }
  }
}

Var::Var(Tensor value, bool requires_grad) {
  TESSERA_CHECK(value.defined(), InternalError, "var: value is undefined");
  TESSERA_CHECK(!requires_grad || is_floating(value.dtype()), DTypeError, "var: a gradient needs a floating dtype, value is ",
                describe(value));
  node_ = std::make_shared<Node>(std::move(value), requires_grad);
}

const Tensor& Var::value() const {
  TESSERA_CHECK(defined(), InternalError, "var: value of an undefined Var");
  return node_->value;
}

bool Var::requires_grad() const { return defined() && node_->requires_grad; }

bool Var::is_leaf() const { return defined() && node_->leaf; }

const Tensor& Var::grad() const {
  TESSERA_CHECK(is_leaf(), InternalError, "grad: only leaves keep a gradient");
  return node_->grad;
}

void Var::set_grad(Tensor grad) const {
  TESSERA_CHECK(is_leaf(), InternalError, "set_grad: only leaves keep a gradient");
  TESSERA_CHECK(!grad.defined() || (grad.shape() == shape() && grad.dtype() == dtype()), ShapeError, "set_grad: gradient is ",
                describe(grad), ", value is ", describe(value()));
  node_->grad = std::move(grad);
}

void Var::set_value(Tensor value) const {
  TESSERA_CHECK(is_leaf(), InternalError, "set_value: only leaves may be assigned");
  TESSERA_CHECK(value.defined(), InternalError, "set_value: value is undefined");
  node_->value = std::move(value);
  node_->grad = Tensor();
}

void Var::set_requires_grad(bool requires_grad) const {
  TESSERA_CHECK(is_leaf(), InternalError, "set_requires_grad: only leaves may change");
  node_->requires_grad = requires_grad;
}

Var record(std::unique_ptr<Op> op, std::span<const Var> inputs, Tensor y) {
  TESSERA_CHECK(inputs.size() <= NeedsGrad::kMaxInputs, InternalError, op->name(), ": ", inputs.size(), " inputs; at most ",
                NeedsGrad::kMaxInputs);
  if (NumericCheck::active()) numeric_check::forward(*op, inputs, y);
  if (Profile* const profile = Profile::active()) op_profile::forward(*profile, *op, inputs, y);
  bool needed = false;
  for (const Var& input : inputs) needed = needed || input.requires_grad();
  auto node = std::make_shared<Node>(std::move(y), needed && recording);
  if (node->requires_grad) {
    node->leaf = false;
    node->op = std::move(op);
    node->inputs.reserve(inputs.size());
    for (const Var& input : inputs) node->inputs.push_back(input.node());
    node->module = ModuleScope::current();
  }
  return Var(std::move(node));
}

bool grad_enabled() noexcept { return recording; }

NoGrad::NoGrad() noexcept : previous_(std::exchange(recording, false)) {}
NoGrad::~NoGrad() { recording = previous_; }
EnableGrad::EnableGrad() noexcept : previous_(std::exchange(recording, true)) {}
EnableGrad::~EnableGrad() { recording = previous_; }

}  // namespace tessera
