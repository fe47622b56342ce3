// A value in the graph that is being recorded. Copies share the node. Values of recorded Vars are never written in place;
// only optimisers write leaves, between steps.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "core/autograd/op.h"
#include "core/support/module_scope.h"
#include "core/tensor.h"

namespace tessera {

class Node;

class Var {
 public:
  Var() = default;
  // A leaf. With requires_grad the sweep leaves its gradient in grad().
  explicit Var(Tensor value, bool requires_grad = false);

  bool defined() const noexcept { return node_ != nullptr; }
  const Tensor& value() const;
  const Shape& shape() const { return value().shape(); }
  DType dtype() const { return value().dtype(); }
  Device device() const { return value().device(); }
  bool requires_grad() const;
  bool is_leaf() const;

  // Gradient of a leaf; undefined until a backward reached it. Sums over sweeps until cleared.
  const Tensor& grad() const;
  void set_grad(Tensor grad) const;  // between backward and step: hooks, clipping, tests
  void set_value(Tensor value) const;  // leaves only: loading, optimisers
  void set_requires_grad(bool requires_grad) const;  // leaves only

  const std::shared_ptr<Node>& node() const noexcept { return node_; }

 private:
  friend Var record(std::unique_ptr<Op> op, std::span<const Var> inputs, Tensor y);
  explicit Var(std::shared_ptr<Node> node) : node_(std::move(node)) {}

  std::shared_ptr<Node> node_;
};

// What the sweep sees. `sequence` is the creation number: inputs always have smaller ones.
class Node {
 public:
  Node(Tensor value, bool requires_grad);
  ~Node();  // releases long chains of inputs without recursion
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Tensor value;
  Tensor grad;
  std::unique_ptr<Op> op;
  std::vector<std::shared_ptr<Node>> inputs;
  std::uint64_t sequence;
  ModulePath module = nullptr;  // whose forward recorded it
  bool requires_grad;
  bool leaf = true;
  bool swept = false;  // op and inputs were released by a backward
};

// Makes y a node of the graph. Drops op and inputs when grad mode is off or no input needs a gradient.
Var record(std::unique_ptr<Op> op, std::span<const Var> inputs, Tensor y);
inline Var record(std::unique_ptr<Op> op, std::initializer_list<Var> inputs, Tensor y) {
  return record(std::move(op), std::span(inputs.begin(), inputs.size()), std::move(y));
}

// True while operations are recorded on this thread.
bool grad_enabled() noexcept;

// Turns recording off for the scope: evaluation, optimisers, surgery on weights.
class NoGrad {
 public:
  NoGrad() noexcept;
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool previous_;
};

// Turns recording on for the scope, inside a NoGrad: an op's backward that records a nested graph.
class EnableGrad {
 public:
  EnableGrad() noexcept;
  ~EnableGrad();
  EnableGrad(const EnableGrad&) = delete;
  EnableGrad& operator=(const EnableGrad&) = delete;

 private:
  bool previous_;
};

}  // namespace tessera
