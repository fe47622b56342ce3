#include "core/autograd/backward.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/autograd/accumulate.h"
#include "core/autograd/numeric_check.h"
#include "core/autograd/op_profile.h"
#include "core/support/error.h"

namespace tessera {
namespace {

using NodePtr = std::shared_ptr<Node>;

struct BySequence {
  bool operator()(const NodePtr& a, const NodePtr& b) const noexcept { return a->sequence < b->sequence; }
};

// Gradients in progress and the order in which their nodes are visited. Every consumer of a node has a higher creation number,
// so a node popped from the queue has received all of its gradient.
class Sweep {
 public:
  // holds_leaves: leaves are not queued; take() returns their gradients.
  explicit Sweep(bool holds_leaves) : holds_leaves_(holds_leaves) {}

  void add(const NodePtr& node, Tensor grad) {
    auto [slot, fresh] = pending_.try_emplace(node.get());
    if (fresh && node->leaf && holds_leaves_) {
      held_.push_back(node);
    } else if (fresh) {
      queue_.push(node);
    }
    slot->second = fresh ? std::move(grad) : sum(std::move(slot->second), grad);
    if (fresh) return;
    if (NumericCheck::active()) numeric_check::sum(*node, slot->second);
    if (Profile* const profile = Profile::active()) op_profile::sum(*profile, *node, slot->second);
  }

  // The node's gradient so far, if it may be overwritten. Null if there is none, or if it is shared or not contiguous.
  Tensor* own_sum(const Node& node) {
    const auto found = pending_.find(&node);
    const bool own = found != pending_.end() && found->second.sole_owner() && found->second.is_contiguous();
    return own ? &found->second : nullptr;
  }

  bool empty() const { return queue_.empty(); }

  std::pair<NodePtr, Tensor> pop() {
    NodePtr node = queue_.top();
    queue_.pop();
    auto entry = pending_.extract(node.get());
    return {std::move(node), std::move(entry.mapped())};
  }

  // Removes and returns the gradient of a held leaf; undefined if the leaf has received none.
  Tensor take(const Node& leaf) {
    auto entry = pending_.extract(&leaf);
    return entry.empty() ? Tensor() : std::move(entry.mapped());
  }

  // Held leaves that were not taken, by descending creation number.
  std::vector<NodePtr> left() const {
    std::vector<NodePtr> leaves;
    for (const NodePtr& leaf : held_) {
      if (pending_.contains(leaf.get())) leaves.push_back(leaf);
    }
    std::ranges::sort(leaves, [](const NodePtr& a, const NodePtr& b) { return BySequence()(b, a); });
    return leaves;
  }

  // a + b, in place when nobody else holds a's bytes: an op may return grad_y itself for several inputs.
  static Tensor sum(Tensor a, const Tensor& b) {
    if (a.sole_owner() && a.is_contiguous() && !a.shares_storage(b)) {
      accumulate(a, b);
      return a;
    }
    Tensor total = a.clone();
    accumulate(total, b);
    return total;
  }

 private:
  bool holds_leaves_;
  std::vector<NodePtr> held_;
  std::priority_queue<NodePtr, std::vector<NodePtr>, BySequence> queue_;
  std::unordered_map<const Node*, Tensor> pending_;
};

template <class Visit>
void for_each_read(const Node& node, Visit&& visit) {
  const auto visit_trained = [&](const NodePtr& input) {
    if (input->requires_grad) visit(input);
  };
  std::ranges::for_each(node.inputs, visit_trained);
  if (node.op) std::ranges::for_each(node.op->leaves_inside(), visit_trained);
}

// Counts for each leaf the reads by nodes that the sweep has not visited yet.
class Reads {
 public:
  explicit Reads(const NodePtr& root) {
    std::unordered_set<const Node*> seen{root.get()};
    std::vector<const Node*> stack{root.get()};
    while (!stack.empty()) {
      const Node& node = *stack.back();
      stack.pop_back();
      for_each_read(node, [&](const NodePtr& input) {
        if (input->leaf) {
          ++left_[input.get()];
        } else if (seen.insert(input.get()).second) {
          stack.push_back(input.get());
        }
      });
    }
  }

  // Leaves that only this node still reads. The node was visited already.
  std::vector<NodePtr> ended_by(const Node& node) {
    std::vector<NodePtr> leaves;
    for_each_read(node, [&](const NodePtr& input) {
      if (input->leaf && --left_.at(input.get()) == 0) leaves.push_back(input);
    });
    return leaves;
  }

 private:
  std::unordered_map<const Node*, int> left_;
};

void check_gradient(const Node& node, const Node& input, const Tensor& grad) {
  TESSERA_CHECK(grad.shape() == input.value.shape() && grad.dtype() == input.value.dtype(), InternalError,
                "backward: ", node.op->name(), " returned a gradient ", describe(grad), " for an input ", describe(input.value));
}

// A leaf is the only owner of its gradient: clipping and hooks edit it in place.
void store_leaf(Node& leaf, Tensor grad) {
  if (!leaf.grad.defined() && grad.sole_owner() && grad.is_contiguous()) {
    leaf.grad = std::move(grad);
    return;
  }
  leaf.grad = leaf.grad.defined() ? Sweep::sum(std::move(leaf.grad), grad) : grad.clone();
  if (Profile* const profile = Profile::active()) op_profile::sum(*profile, leaf, leaf.grad);
}

// Lets the op add its input's gradient to the sum of other uses; false if it did not. A numeric check also sees the gradient
// alone, which changes no byte.
bool adds_to_sum(Sweep& sweep, const Node& node, const Tensor& grad) {
  if (node.inputs.size() != 1 || !node.inputs[0]->requires_grad) return false;
  Tensor* const sum = sweep.own_sum(*node.inputs[0]);
  if (sum == nullptr || !node.op->add_backward(grad, *sum)) return false;
  if (Profile* const profile = Profile::active()) op_profile::added(*profile, node, grad);
  if (NumericCheck::active()) {
    numeric_check::backward(node, grad, node.op->backward(grad, NeedsGrad(1)));
    numeric_check::sum(*node.inputs[0], *sum);
  }
  return true;
}

// `grad` is the caller's only copy: an op may write its result over a gradient that nobody else holds.
void visit(Sweep& sweep, Node& node, Tensor grad) {
  if (!grad.is_contiguous()) grad = grad.contiguous();
  const Tensor kept = NumericCheck::active() ? grad : Tensor();  // the check reads it again
  std::uint64_t needs = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) needs |= std::uint64_t{node.inputs[i]->requires_grad} << i;
  if (adds_to_sum(sweep, node, grad)) return;
  Grads grads = node.op->backward(grad, NeedsGrad(needs));
  if (Profile* const profile = Profile::active()) op_profile::backward(*profile, node, grad, NeedsGrad(needs), grads);
  TESSERA_CHECK(grads.size() == node.inputs.size(), InternalError, "backward: ", node.op->name(), " returned ", grads.size(),
                " gradients for ", node.inputs.size(), " inputs");
  if (NumericCheck::active()) numeric_check::backward(node, grad, grads);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined() || !node.inputs[i]->requires_grad) continue;
    check_gradient(node, *node.inputs[i], grads[i]);
    sweep.add(node.inputs[i], std::move(grads[i]));
  }
}

}  // namespace

void backward(const Var& y, const Tensor& grad_y, const LeafDone& done) {
  TESSERA_CHECK(y.requires_grad(), InternalError, "backward: nothing recorded leads to this value");
  TESSERA_CHECK(grad_y.defined() || y.value().numel() == 1, ShapeError, "backward: value is ", y.shape(),
                "; needs a gradient, or exactly one element");
  TESSERA_CHECK(!grad_y.defined() || grad_y.shape() == y.shape(), ShapeError, "backward: gradient is ", grad_y.shape(),
                ", value is ", y.shape());
  const NoGrad no_grad;
  std::optional<Reads> reads;
  if (done) reads.emplace(y.node());
  Sweep sweep(reads.has_value());
  sweep.add(y.node(), grad_y.defined() ? grad_y : Tensor::full(y.shape(), 1.0, y.dtype(), y.device()));
  const auto end_leaf = [&](Node& leaf) {
    Tensor grad = sweep.take(leaf);
    if (grad.defined()) store_leaf(leaf, std::move(grad));
    if (leaf.grad.defined()) done(leaf);
  };
  while (!sweep.empty()) {
    auto [node, grad] = sweep.pop();
    if (node->leaf) {
      store_leaf(*node, std::move(grad));
      continue;
    }
    TESSERA_CHECK(!node->swept, InternalError,
                  "backward: the graph behind this value was already swept and released; run the forward again");
    try {
      visit(sweep, *node, std::move(grad));
    } catch (const OutOfMemoryError& error) {
      throw error.at(place(node->op->name(), node->module) + " backward");
    }
    if (reads) {
      for (const NodePtr& leaf : reads->ended_by(*node)) end_leaf(*leaf);
    }
    node->swept = true;
    node->op.reset();
    node->inputs.clear();
  }
  for (const NodePtr& leaf : sweep.left())
    end_leaf(*leaf);  // some op returned no gradient, so the nodes below it were not visited
}

}  // namespace tessera
