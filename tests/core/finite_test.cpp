#include "core/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tessera {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor with_element(const Shape& shape, std::int64_t offset, double value, DType dtype = DType::f32) {
  Tensor tensor = Tensor::full(shape, -2.0, dtype);
  tensor.reshape({tensor.numel()}).slice(0, offset, offset + 1).fill(value);
  return tensor;
}

TEST(Finite, FindsTheFirstBadElementInRowMajorOrder) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    SCOPED_TRACE(name_of(dtype));
    const Tensor tensor = with_element({2, 3, 5}, 22, kNan, dtype);
    EXPECT_FALSE(all_finite(tensor));
    const auto bad = first_bad_element(tensor);
    ASSERT_TRUE(bad);
    EXPECT_EQ(bad->index, Shape({1, 1, 2}));
    EXPECT_EQ(bad->kind(), "NaN");
  }
  EXPECT_EQ(first_bad_element(with_element({7}, 6, -kInf))->kind(), "Inf");
}

TEST(Finite, CountsIndicesOfAViewNotOfItsStorage) {
  const Tensor tensor = with_element({2, 3}, 2, kInf).permute({1, 0});
  EXPECT_EQ(first_bad_element(tensor)->index, Shape({2, 0}));
  EXPECT_TRUE(all_finite(tensor.slice(0, 0, 2)));
}

TEST(Finite, DescribesTheElement) {
  const Tensor tensor = with_element({2, 3}, 2, -kInf);
  EXPECT_EQ(describe(tensor, *first_bad_element(tensor)), "f32 [2, 3] at [0, 2] is -inf");
  const Tensor negative = with_element({1}, 0, std::copysign(kNan, -1.0));
  EXPECT_EQ(describe(negative, *first_bad_element(negative)), "f32 [1] at [0] is nan");
}

TEST(Finite, EmptyIntegerAndUndefinedTensorsAreFinite) {
  EXPECT_TRUE(all_finite(Tensor()));
  EXPECT_TRUE(all_finite(Tensor::empty({0, 3})));
  EXPECT_TRUE(all_finite(Tensor::zeros({3}, DType::i64)));
  EXPECT_FALSE(first_bad_element(Tensor::zeros({3}, DType::u8)));
}

TEST(Finite, MagnitudePassesOverWhatIsNotFinite) {
  EXPECT_EQ(largest_magnitude(with_element({3}, 1, kNan)), 2.0);
  EXPECT_EQ(largest_magnitude(with_element({3}, 1, -7.0)), 7.0);
  EXPECT_EQ(largest_magnitude(Tensor::empty({0})), 0.0);
}

}  // namespace
}  // namespace tessera
