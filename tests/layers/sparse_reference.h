// A sparse layer against the dense layer whose weight has the same mask.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "core/autograd/backward.h"
#include "core/nn/module.h"
#include "core/ops/cast.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {

// The elements that a mask keeps, in their order; all without one.
inline std::vector<double> kept(const Tensor& tensor, const Tensor& mask) {
  const std::vector<double> all = values(tensor);
  if (!mask.defined()) return all;
  const std::vector<std::uint8_t> keeps = mask.to_vector<std::uint8_t>();
  std::vector<double> some;
  for (std::size_t i = 0; i < keeps.size(); ++i) {
    if (keeps[i] != 0) some.push_back(all[i]);
  }
  return some;
}

// Forward and all gradients; both layers have a bias.
inline void expect_same_layer(Module& sparse, Module& dense, const Shape& input, DType compute = DType::f32) {
  // Both round the same operands and sum in f32; where results are stored in bf16, two neighbours may stand for one sum.
  const double tolerance = compute == DType::bf16 ? 0x1p-7 : 1e-5;
  const Tensor x = random_tensor(input, DType::f32, 1);
  const Var x1(x, true), x2(x, true);
  const Var y1 = dense(cast(x1, compute), {}), y2 = sparse(cast(x2, compute), {});
  ASSERT_EQ(y2.dtype(), compute);
  EXPECT_LE(relative_error(y2.value(), y1.value()), tolerance);
  const Tensor grad_y = random_tensor(y1.shape(), DType::f32, 2).to(compute);
  backward(y1, grad_y);
  backward(y2, grad_y);
  EXPECT_LE(relative_error(x2.grad(), x1.grad()), tolerance);
  const Parameter& weight = dense.parameter("weight");
  EXPECT_LE(relative_error(values(sparse.parameter("values").grad()), kept(weight.grad(), weight.mask())), tolerance);
  EXPECT_LE(relative_error(sparse.parameter("bias").grad(), dense.parameter("bias").grad()), tolerance);
}

}  // namespace tessera::testing
