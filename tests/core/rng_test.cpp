#include "core/rng.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Known answers of Random123's philox4x32-10.
TEST(Rng, PhiloxMatchesItsKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (Words{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  const std::uint32_t ones = 0xffffffffu;
  EXPECT_EQ(philox({ones, ones, ones, ones}, 0xffffffffffffffffu), (Words{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, 0x299f31d0a4093822u),
            (Words{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(Rng, StreamsDifferInSeedPathAndPurpose) {
  const std::uint64_t key = RngStream(1, "layer1", "mask").key;
  EXPECT_EQ(RngStream(1, "layer1", "mask").key, key);
  EXPECT_NE(RngStream(2, "layer1", "mask").key, key);
  EXPECT_NE(RngStream(1, "layer2", "mask").key, key);
  EXPECT_NE(RngStream(1, "layer1", "weight").key, key);
  EXPECT_NE(RngStream(1, "ab", "c").key, RngStream(1, "a", "bc").key);
}

TEST(Rng, FillsMatchSingleDraws) {
  const RngStream stream(7, "x", "values");
  const Tensor x = Tensor::empty({1009});
  fill_uniform(x, stream, 0.0, 1.0, 3);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    ASSERT_EQ(x.data<float>()[i], random_uniform(stream, 3, static_cast<std::uint64_t>(i)));
  }
}

TEST(Rng, FillsDoNotDependOnThreads) {
  const RngStream stream(7, "x", "values");
  const Tensor one = Tensor::empty({100003});
  const Tensor many = Tensor::empty({100003});
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  fill_normal(one, stream, 0.0, 1.0);
  omp_set_num_threads(3);
  fill_normal(many, stream, 0.0, 1.0);
  omp_set_num_threads(before);
  EXPECT_EQ(one.to_vector<float>(), many.to_vector<float>());
}

TEST(Rng, MomentsAreRight) {
  const Tensor x = Tensor::empty({100003}, DType::f64);
  const auto moments = [&] {
    double mean = 0;
    double square = 0;
    for (const double value : x.to_vector<double>()) {
      mean += value / 100003;
      square += value * value / 100003;
    }
    return std::pair{mean, square - mean * mean};
  };
  fill_normal(x, RngStream(1, "x", "normal"), 2.0, 3.0);
  EXPECT_NEAR(moments().first, 2.0, 0.05);  // five standard errors
  EXPECT_NEAR(moments().second, 9.0, 0.2);
  fill_uniform(x, RngStream(1, "x", "uniform"), -1.0, 3.0);
  EXPECT_NEAR(moments().first, 1.0, 0.02);
  EXPECT_NEAR(moments().second, 16.0 / 12.0, 0.02);
}

TEST(Rng, PermutationsHoldEveryNumberOnce) {
  const RngStream stream(1, "data", "order");
  for (const std::int64_t count : {0, 1, 2, 257}) {
    std::vector<std::int64_t> order = random_permutation(stream, 0, count);
    EXPECT_TRUE(count <= 2 || order != random_permutation(stream, 1, count));
    EXPECT_EQ(order, random_permutation(stream, 0, count));
    std::sort(order.begin(), order.end());
    for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
  }
}

TEST(Rng, RefusesWhatItCannotFill) {
  EXPECT_THROW(fill_uniform(Tensor::empty({4, 4}).permute({1, 0}), RngStream(), 0, 1), ShapeError);
  EXPECT_THROW(fill_uniform(Tensor::empty({4}, DType::i64), RngStream(), 0, 1), DTypeError);
  EXPECT_THROW(random_below(RngStream(), 0, 0, 0), InternalError);
}

}  // namespace
}  // namespace tessera
