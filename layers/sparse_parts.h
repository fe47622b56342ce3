// What sparse layers have in common: the values that a weight keeps are a parameter [kept], in the order of the weight's
// elements; which they are is a buffer of one bit an element (core/mask_bits.h).
#pragma once

#include <string>

#include "core/nn/module.h"
#include "core/ops/sparse_weight.h"

namespace tessera {

class SparseParts {
 public:
  // The parameter and the buffer of `owner`; `kind` names it in errors.
  SparseParts(std::string kind, const Module& owner, const Shape& weight, Parameter& values, Buffer& mask)
      : kind_(std::move(kind)), owner_(owner), shape_(weight), values_(values), mask_(mask) {}

  // Where the kept elements lie. Throws IoError where the buffer is no mask of this weight.
  const SparseWeightPtr& weight() const;
  void changed();  // to be called when the buffer has changed: makes weight() anew at once, and throws what that throws

  // The kept elements of a dense weight, and its mask: u8, of its shape.
  void take(const Tensor& weight, const Tensor& mask);
  // As many elements as there are values, drawn without repetition, uniformly; a mask that is there stays.
  void draw_mask(std::uint64_t seed);
  Tensor dense() const;
  Tensor mask() const;  // u8 on the CPU, of the weight's shape
  std::string structure() const;  // "16 rows together"
  std::int64_t left_out() const { return shape_.numel() - values_.value().numel(); }
  Parameter& values() const noexcept { return values_; }

 private:
  std::string kind_;
  const Module& owner_;
  Shape shape_;
  Parameter& values_;
  Buffer& mask_;
  mutable SparseWeightPtr weight_;
};

// What is wrong with a number of kept elements of a weight: "" where nothing is.
std::string kept_problem(std::int64_t kept, const Shape& weight);

}  // namespace tessera
