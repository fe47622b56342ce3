#include "core/ops/cast.h"

#include <gtest/gtest.h>

#include "core/autograd/backward.h"
#include "core/ops/reduce.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

TEST(Cast, RoundsToNearestAndGivesTheGradientBackInTheInputsDtype) {
  const Var x(Tensor::from<float>({1.0f, 1.0f + 0x1p-8f, 1.0f + 0x1p-8f + 0x1p-16f, -3.0f}, {2, 2}), true);
  const Var y = cast(x, DType::bf16);
  EXPECT_EQ(y.dtype(), DType::bf16);
  // A tie rounds to even, anything above it rounds up.
  EXPECT_EQ(y.value().to(DType::f32).to_vector<float>(), (std::vector<float>{1.0f, 1.0f, 1.0f + 0x1p-7f, -3.0f}));
  backward(y, Tensor::full({2, 2}, 0.5, DType::bf16));
  EXPECT_EQ(x.grad().dtype(), DType::f32);
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(4, 0.5f));
}

TEST(Cast, IsTheInputWhereNothingChanges) {
  const Var x(Tensor::full({3}, 1.0), true);
  EXPECT_EQ(cast(x, DType::f32).node(), x.node());
}

TEST(Cast, RefusesIntegers) {
  EXPECT_EQ(message_of<DTypeError>([] { cast(Var(Tensor::full({2}, 1.0, DType::i64)), DType::f32); }),
            "cast: x is i64 [2] on cpu, asked as f32; both must be floating");
  EXPECT_EQ(message_of<DTypeError>([] { cast(Var(Tensor::full({2}, 1.0)), DType::u8); }),
            "cast: x is f32 [2] on cpu, asked as u8; both must be floating");
}

// Sums of bf16 are accumulated in a wider type: in bf16, adding ones would stop at 256.
TEST(Cast, SumsOfBf16RunWider) {
  const Var x(Tensor::full({1024}, 1.0, DType::bf16), true);
  EXPECT_EQ(sum(x).value().item(), 1024.0);
}

}  // namespace
}  // namespace tessera
