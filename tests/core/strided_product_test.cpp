#include "core/strided_product.h"

#include <gtest/gtest.h>

#include <array>

namespace tessera::testing {
namespace {

using Strides = std::array<std::int64_t, 3>;

Strides of(const MatrixStrides& s) { return {s.batch, s.row, s.column}; }

TEST(StridedProduct, MatricesOfLargerSizesStayAsTheyAre) {
  const StridedProduct p = regular({.batch = 2, .m = 3, .n = 5, .k = 7, .a = {1, 9, 1}, .b = {0, 1, 8}, .y = {20, 6, 1}});
  EXPECT_EQ(of(p.a), (Strides{1, 9, 1}));
  EXPECT_EQ(of(p.b), (Strides{0, 1, 8}));
  EXPECT_EQ(of(p.y), (Strides{20, 6, 1}));
  EXPECT_EQ(p.flops(), 2.0 * 2 * 3 * 5 * 7);
}

// A dimension of size 1 has a stride that does not matter, here 77.
TEST(StridedProduct, ADimensionOfOneGetsADenseMatrixsStride) {
  const StridedProduct rows = regular({.m = 1, .n = 5, .k = 7, .a = {0, 77, 1}, .b = {0, 1, 8}, .y = {0, 77, 1}});
  EXPECT_EQ(of(rows.a), (Strides{0, 7, 1}));
  EXPECT_EQ(of(rows.y), (Strides{0, 5, 1}));
  const StridedProduct columns = regular({.m = 3, .n = 1, .k = 7, .a = {0, 9, 1}, .b = {0, 1, 77}, .y = {0, 6, 77}});
  EXPECT_EQ(of(columns.b), (Strides{0, 1, 7}));
  EXPECT_EQ(of(columns.y), (Strides{0, 6, 1}));
  const StridedProduct outer = regular({.m = 3, .n = 5, .k = 1, .a = {0, 4, 77}, .b = {0, 77, 6}, .y = {0, 5, 1}});
  EXPECT_EQ(of(outer.a), (Strides{0, 4, 1}));
  EXPECT_EQ(of(outer.b), (Strides{0, 1, 6}));
  const StridedProduct one = regular({.batch = 4, .a = {9, 77, 77}, .b = {3, 77, 77}, .y = {2, 77, 77}});
  EXPECT_EQ(of(one.a), (Strides{9, 1, 1}));
  EXPECT_EQ(of(one.b), (Strides{3, 1, 1}));
  EXPECT_EQ(of(one.y), (Strides{2, 1, 1}));
}

}  // namespace
}  // namespace tessera::testing
