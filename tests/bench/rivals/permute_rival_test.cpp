#include "bench/rivals/permute_rival.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/support/error.h"

namespace tessera::bench {
namespace {

Tensor counting(const Shape& shape) {
  const Tensor x = Tensor::empty(shape);
  std::iota(x.data<float>(), x.data<float>() + x.numel(), 0.0f);
  return x;
}

void expect_copied(const Tensor& view) {
  const Tensor copy = Tensor::full(view.shape(), -1);
  permute_into(view, copy);
  EXPECT_EQ(copy.to_vector<float>(), view.contiguous().to_vector<float>()) << view.shape();
}

// Below a tile, whole tiles, tiles with a rest.
TEST(PermuteRival, CopiesInEveryOrder) {
  std::vector<int> axes{0, 1, 2};
  do {
    for (const Shape& shape : {Shape{3, 5, 7}, Shape{64, 32, 128}, Shape{33, 64, 65}, Shape{70, 1, 96}}) {
      expect_copied(counting(shape).permute(axes));
    }
  } while (std::ranges::next_permutation(axes).found);
}

TEST(PermuteRival, CopiesPastTheCaches) {
  expect_copied(counting({2064, 2112}).permute({1, 0}));
  expect_copied(counting({40, 33, 4000}).permute({1, 0, 2}));
  expect_copied(counting({40, 33, 4001}).permute({1, 0, 2}));  // rows that begin anywhere
}

TEST(PermuteRival, CopiesWithoutAContiguousAxis) { expect_copied(counting({5, 6, 2}).permute({1, 0, 2}).slice(2, 0, 1)); }

}  // namespace
}  // namespace tessera::bench
