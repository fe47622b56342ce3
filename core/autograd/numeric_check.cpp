#include "core/autograd/numeric_check.h"

#include <algorithm>
#include <utility>

#include "core/finite.h"
#include "core/support/error.h"
#include "core/support/module_scope.h"

namespace tessera {
namespace {

thread_local bool checking = false;

std::string label(const Node& node) { return place(node.op ? node.op->name() : "a leaf", node.module); }

std::string magnitude(double largest) { return str("finite, up to ", largest, " in magnitude"); }

}  // namespace

NumericCheck::NumericCheck() noexcept : previous_(std::exchange(checking, true)) {}

NumericCheck::~NumericCheck() { checking = previous_; }

NumericCheckPause::NumericCheckPause(bool paused) noexcept : previous_(std::exchange(checking, checking && !paused)) {}

NumericCheckPause::~NumericCheckPause() { checking = previous_; }

bool NumericCheck::active() noexcept { return checking; }

namespace numeric_check {

void forward(const Op& op, std::span<const Var> inputs, const Tensor& y) {
  const auto bad = first_bad_element(y);
  if (!bad) return;
  const std::string where = place(op.name(), ModuleScope::current());
  double largest = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& x = inputs[i].value();
    const auto given = first_bad_element(x);
    TESSERA_CHECK(!given, NumericError, where, " forward was given the first ", given->kind(), ": input ", i, " ",
                  describe(x, *given));
    largest = std::max(largest, largest_magnitude(x));
  }
  throw NumericError(str(where, " forward made the first ", bad->kind(), ": output ", describe(y, *bad), "; its inputs were ",
                         magnitude(largest)));
}

void backward(const Node& node, const Tensor& grad_y, const Grads& grads) {
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const auto bad = first_bad_element(grads[i]);
    if (!bad) continue;
    const auto given = first_bad_element(grad_y);
    TESSERA_CHECK(!given, NumericError, label(node), " backward was given the first ", given->kind(),
                  ": the gradient of its output ", describe(grad_y, *given));
    throw NumericError(str(label(node), " backward made the first ", bad->kind(), ": gradient of input ", i, " ",
                           describe(grads[i], *bad), "; the gradient of its output was ", magnitude(largest_magnitude(grad_y))));
  }
}

void sum(const Node& node, const Tensor& total) {
  const auto bad = first_bad_element(total);
  TESSERA_CHECK(!bad, NumericError, "the gradients of ", label(node), " add up to the first ", bad->kind(), ": ",
                describe(total, *bad));
}

}  // namespace numeric_check
}  // namespace tessera
