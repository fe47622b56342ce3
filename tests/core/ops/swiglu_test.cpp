#include "core/ops/swiglu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/autograd/backward.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

// NaN in vector lanes and in the tail of each half.
TEST(Swiglu, NanReachesValueAndGradients) {
  constexpr std::int64_t n = 37;
  for (const std::int64_t at : {0, 5, 36, 37, 54, 73}) {
    std::vector<float> values(2 * n, 0.5F);
    values[static_cast<std::size_t>(at)] = std::numeric_limits<float>::quiet_NaN();
    const Var x(Tensor::from(values, {2 * n}), true);
    const Var y = swiglu(x);
    EXPECT_TRUE(std::isnan(y.value().to_vector<float>()[static_cast<std::size_t>(at % n)])) << at;
    backward(y, Tensor::full({n}, 1.0));
    const std::size_t other = static_cast<std::size_t>((at + n) % (2 * n));
    EXPECT_TRUE(std::isnan(x.grad().to_vector<float>()[other])) << at;
  }
}

TEST(Swiglu, AGateFarFromZeroIsOpenOrShut) {
  const Var x(Tensor::from(std::vector<float>{-1000, -90, 90, 1000, 3, 3, 3, 3}, {8}), true);
  const Var y = swiglu(x);
  EXPECT_EQ(y.value().to_vector<float>()[2], 270.0F);
  EXPECT_EQ(y.value().to_vector<float>()[3], 3000.0F);
  for (const std::size_t at : {0, 1}) EXPECT_NEAR(y.value().to_vector<float>()[at], 0, 1e-34) << at;
  backward(y, Tensor::full({4}, 1.0));
  const std::vector<float> grad = x.grad().to_vector<float>();
  for (const std::size_t at : {0, 1, 4, 5}) EXPECT_NEAR(grad[at], 0, 1e-30) << at;
  for (const std::size_t at : {2, 3}) EXPECT_EQ(grad[at], 3.0F) << at;
}

TEST(Swiglu, NamesWhatHasNoTwoHalves) {
  const auto refusal = [](const Shape& shape) { return message_of<ShapeError>([&] { swiglu(Var(Tensor::full(shape, 1.0))); }); };
  EXPECT_EQ(refusal({3, 5}), "swiglu: no two halves: x is [3, 5]; its last dimension must be even");
  EXPECT_EQ(refusal({}), "swiglu: no two halves: x is []; its last dimension must be even");
}

}  // namespace
}  // namespace tessera
