#include "bench/device_rotation.h"

#include <gtest/gtest.h>

#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr double kMiB = 1 << 20;

TEST(DeviceRotation, SetsAreBeyondCachesWithinReason) {
  EXPECT_EQ(sets_beyond_caches(500 * kMiB), 1u);
  EXPECT_EQ(sets_beyond_caches(128 * kMiB), 1u);
  EXPECT_EQ(sets_beyond_caches(127 * kMiB), 2u);
  EXPECT_EQ(sets_beyond_caches(kMiB), 128u);
  EXPECT_EQ(sets_beyond_caches(16), 2048u);
}

TEST(DeviceRotation, SetsHoldOtherNumbers) {
  const std::vector<Tensor> sets = random_sets({7, 3}, "x", DType::f32, {}, 3);
  ASSERT_EQ(sets.size(), 3u);
  EXPECT_NE(sets[0].to_vector<float>(), sets[1].to_vector<float>());
  EXPECT_NE(sets[1].to_vector<float>(), sets[2].to_vector<float>());
  EXPECT_EQ(sets[0].to_vector<float>(), random_sets({7, 3}, "x", DType::f32, {}, 1)[0].to_vector<float>());
  for (const Tensor& tensor : empty_sets({7, 3}, DType::bf16, {}, 2)) EXPECT_EQ(tensor.dtype(), DType::bf16);
}

TEST(DeviceRotation, AResultIsInTheOrderOfTheOtherSides) {
  const RotatedSide side{"channels first", [](std::size_t) {}, Tensor::zeros({2, 5, 3, 4}),
                         [](const Tensor& y) {
                           return y.permute({0, 2, 3, 1});
                         }};
  EXPECT_EQ(side.result().shape(), (Shape{2, 3, 4, 5}));
  EXPECT_EQ((RotatedSide{"as it is", {}, Tensor::zeros({2, 5})}).result().shape(), (Shape{2, 5}));
}

TEST(DeviceRotation, OnlyAGpusWorkIsRecorded) {
  EXPECT_THROW(recorded({"none", [](std::size_t) {}, {}}, Device::cpu(), 1, 1), DeviceError);
}

}  // namespace
}  // namespace tessera::bench
