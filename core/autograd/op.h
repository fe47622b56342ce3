// One recorded operation: what its backward needs, and nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace tessera {

class Node;

// Which inputs need a gradient; backward may leave the others empty and should skip their work.
class NeedsGrad {
 public:
  static constexpr std::size_t kMaxInputs = 64;
  explicit NeedsGrad(std::uint64_t bits = ~std::uint64_t{0}) noexcept : bits_(bits) {}
  bool operator[](int input) const noexcept { return (bits_ >> input & 1) != 0; }

 private:
  std::uint64_t bits_;
};

using Grads = std::vector<Tensor>;

class Op {
 public:
  virtual ~Op() = default;
  virtual std::string_view name() const = 0;
  // grad_y is contiguous, with y's shape and dtype. Returns one tensor per input, of that input's shape and dtype; an undefined
  // tensor means "no gradient".
  // May return grad_y itself, and write over it where it is its sole owner; never touches a Var.
  virtual Grads backward(const Tensor& grad_y, NeedsGrad needs) = 0;
  // For an op of one input whose gradient is mostly zeros: adds it to `sum`, which other uses of the input have given and nobody
  // else holds, and returns true. backward() is called where this returns false.
  virtual bool add_backward(const Tensor& grad_y, const Tensor& sum) {
    static_cast<void>(grad_y), static_cast<void>(sum);
    return false;
  }
  // Whether backward may write a result over grad_y. Where this is false, a backward that returns grad_y passes it on unchanged.
  virtual bool writes_over_grad() const { return false; }
  // Leaves beside the inputs that a sweep inside of backward adds to.
  virtual std::span<const std::shared_ptr<Node>> leaves_inside() const { return {}; }
  // Multiply-accumulates of a forward that gave a y of this shape, for ops that contract inputs 0 and 1, or parts of their only
  // input; the gradient of each of the two takes as many again.
  virtual std::int64_t multiply_adds(const Shape& y) const {
    static_cast<void>(y);
    return 0;
  }
};

}  // namespace tessera
