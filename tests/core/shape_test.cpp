#include "core/shape.h"

#include <gtest/gtest.h>

#include "core/support/error.h"

namespace tessera {
namespace {

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape({}).numel(), 1);
  EXPECT_EQ(Shape({3, 5, 7}).numel(), 105);
  EXPECT_EQ(Shape({3, 0, 7}).numel(), 0);
  EXPECT_EQ(Shape({3, 5, 7}).dim(-1), 7);
  EXPECT_EQ(Shape({3, 5, 7}).contiguous_strides(), Shape({35, 7, 1}));
}

TEST(Shape, AppendsAndErases) {
  EXPECT_EQ(Shape({3, 5}).append(7), Shape({3, 5, 7}));
  EXPECT_EQ(Shape({3, 5, 7}).erase(-2), Shape({3, 7}));
  EXPECT_NE(Shape({3}), Shape({3, 1}));
}

TEST(Shape, BroadcastsTrailingDimensions) {
  EXPECT_EQ(broadcast_shapes({5, 1, 3}, {4, 1}, "op"), Shape({5, 4, 3}));
  EXPECT_EQ(broadcast_shapes({}, {2, 0}, "op"), Shape({2, 0}));
  EXPECT_EQ(broadcast_shapes({1}, {0}, "op"), Shape({0}));
}

TEST(Shape, RefusesIllegalSizesAndAxes) {
  EXPECT_THROW(Shape({-1}), ShapeError);
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}), ShapeError);
  EXPECT_THROW(Shape({3}).dim(1), ShapeError);
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1, 1, 1}).append(1), ShapeError);
  try {
    broadcast_shapes({2, 3}, {2}, "add");
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "add: shapes do not broadcast: a is [2, 3], b is [2]; sizes must be equal or 1");
  }
}

}  // namespace
}  // namespace tessera
