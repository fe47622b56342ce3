#include "core/autograd/numeric_check.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/finite.h"

namespace tessera {
namespace {

thread_local bool checking = false;
thread_local const std::string* scope = nullptr;

// Creation number -> path. Nodes carry no path of their own: training would pay for it.
std::unordered_map<std::uint64_t, std::string>& paths() {
  thread_local std::unordered_map<std::uint64_t, std::string> map;
  return map;
}

std::string label(std::string_view op, const std::string& path) {
  return path.empty() ? std::string(op) : str(op, " (", path, ")");
}

std::string label(const Node& node) {
  const auto found = paths().find(node.sequence);
  return label(node.op ? node.op->name() : "a leaf", found == paths().end() ? std::string() : found->second);
}

std::string magnitude(double largest) { return str("finite, up to ", largest, " in magnitude"); }

}  // namespace

NumericCheck::NumericCheck() noexcept : previous_(std::exchange(checking, true)) {}

NumericCheck::~NumericCheck() {
  checking = previous_;
  if (!checking) paths().clear();
}

bool NumericCheck::active() noexcept { return checking; }

ModuleScope::ModuleScope(const std::string& path) noexcept : previous_(std::exchange(scope, &path)) {}
ModuleScope::~ModuleScope() { scope = previous_; }

namespace numeric_check {

void forward(const Op& op, std::span<const Var> inputs, const Tensor& y) {
  const auto bad = first_bad_element(y);
  if (!bad) return;
  const std::string where = label(op.name(), scope != nullptr ? *scope : std::string());
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

void remember(const Node& node) {
  if (scope != nullptr) paths()[node.sequence] = *scope;
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

void forget(const Node& node) { paths().erase(node.sequence); }

}  // namespace numeric_check
}  // namespace tessera
