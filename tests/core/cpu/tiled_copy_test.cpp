#include "core/cpu/tiled_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tessera::testing {
namespace {

Tensor counting(const Shape& shape) {
  const Tensor x = Tensor::empty(shape);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(i);
  return x;
}

bool copies(const Tensor& source, const Tensor& target) {
  return cpu::tiled_copy(make_strided_loop<2>({&source, &target}), source.data<float>(), target.data<float>());
}

// Compares every element, by its own offset in both tensors.
void expect_equal(const Tensor& source, const Tensor& target) {
  ASSERT_EQ(source.shape(), target.shape());
  std::vector<std::int64_t> index(static_cast<std::size_t>(source.rank()));
  for (std::int64_t i = 0; i < source.numel(); ++i) {
    std::int64_t rest = i, from = 0, to = 0;
    for (int axis = source.rank() - 1; axis >= 0; --axis) {
      const std::int64_t at = rest % source.dim(axis);
      rest /= source.dim(axis);
      from += at * source.strides()[axis];
      to += at * target.strides()[axis];
    }
    ASSERT_EQ(source.data<float>()[from], target.data<float>()[to]) << "element " << i << " of " << source.shape();
  }
}

void expect_copied(const Tensor& view) {
  const Tensor target = Tensor::full(view.shape(), -1);
  target.copy_from(view);
  expect_equal(view, target);
}

// Shapes below a vector, parts of tiles, whole tiles, and tiles with a remainder.
TEST(TiledCopy, CopiesInEveryOrder) {
  std::vector<int> axes{0, 1, 2, 3};
  do {
    for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{9, 1, 8, 17}, Shape{64, 2, 32, 3}, Shape{33, 2, 40, 70}}) {
      expect_copied(counting(shape).permute(axes));
    }
  } while (std::ranges::next_permutation(axes).found);
}

TEST(TiledCopy, TakesWhatLiesAcross) {
  const Tensor x = counting({40, 70});
  EXPECT_TRUE(copies(x.permute({1, 0}), Tensor::empty({70, 40})));
  EXPECT_FALSE(copies(x, Tensor::empty({40, 70})));  // contiguous: a plain copy does it
  EXPECT_FALSE(copies(x.slice(1, 0, 60), Tensor::empty({40, 60})));  // rows are contiguous
  EXPECT_FALSE(copies(x.slice(1, 0, 7).permute({1, 0}), Tensor::empty({7, 40})));  // shorter than a vector
}

TEST(TiledCopy, CopiesBetweenViews) {
  const Tensor x = counting({5, 70, 90});
  const Tensor view = x.slice(1, 3, 68).slice(2, 1, 82).permute({2, 0, 1});  // [81, 5, 65]
  const Tensor y = Tensor::full({81, 7, 80}, -1);
  const Tensor target = y.slice(1, 1, 6).slice(2, 9, 74);
  ASSERT_TRUE(copies(view, target));
  expect_equal(view, target);
  const auto untouched = [&](const Tensor& part) {
    const std::vector<float> values = part.contiguous().to_vector<float>();
    return std::ranges::count(values, -1.0f) == static_cast<std::ptrdiff_t>(values.size());
  };
  EXPECT_TRUE(untouched(y.slice(1, 0, 1)) && untouched(y.slice(1, 6, 7)));
  EXPECT_TRUE(untouched(y.slice(2, 0, 9)) && untouched(y.slice(2, 74, 80)));
}

TEST(TiledCopy, CopiesRepeatedElements) {
  expect_copied(counting({1, 40, 50}).expand({3, 40, 50}).permute({2, 0, 1}));
  expect_copied(counting({40, 1}).expand({40, 50}).permute({1, 0}));
}

TEST(TiledCopy, LeavesNothingToCopy) { expect_copied(counting({9, 0, 12}).permute({2, 1, 0})); }

TEST(TiledCopy, CopiesPastTheCaches) {
  expect_copied(counting({2064, 2112}).permute({1, 0}));
  expect_copied(counting({2063, 2111}).permute({1, 0}));  // rows begin at any alignment
  const Tensor x = counting({40, 33, 4000});
  EXPECT_TRUE(copies(x.permute({1, 0, 2}), Tensor::empty({33, 40, 4000})));
  expect_copied(x.permute({1, 0, 2}));
  expect_copied(counting({40, 33, 4001}).permute({1, 0, 2}));
}

}  // namespace
}  // namespace tessera::testing
