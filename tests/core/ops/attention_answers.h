// What attention gives of random operands: y, and the gradients of a random projection of it.
#pragma once

#include <gtest/gtest.h>

#include "core/autograd/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/attention.h"
#include "core/ops/reduce.h"
#include "core/rng.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {

inline Tensor random_values(const Shape& shape, std::uint64_t index, DType dtype = DType::f32) {
  const Tensor x = Tensor::empty(shape);
  fill_uniform(x, RngStream(5, "attention_test", "values"), -1, 1, index);
  return x.to(dtype);
}

struct AttentionAnswer {
  Tensor y, grad_q, grad_k, grad_v;
};

inline AttentionAnswer attention_answer(const Shape& q, const Shape& kv, const AttentionOptions& options,
                                        DType dtype = DType::f32) {
  const Var a(random_values(q, 1, dtype), true), b(random_values(kv, 2, dtype), true), c(random_values(kv, 3, dtype), true);
  const Var y = attention(a, b, c, options);
  backward(sum(mul(y, Var(random_values(q, 4, dtype)))));
  return {y.value(), a.grad(), b.grad(), c.grad()};
}

inline void expect_close(const AttentionAnswer& a, const AttentionAnswer& b, double tolerance) {
  EXPECT_LT(relative_error(a.y, b.y), tolerance);
  EXPECT_LT(relative_error(a.grad_q, b.grad_q), tolerance);
  EXPECT_LT(relative_error(a.grad_k, b.grad_k), tolerance);
  EXPECT_LT(relative_error(a.grad_v, b.grad_v), tolerance);
}

}  // namespace tessera::testing
