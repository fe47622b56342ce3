#include "core/device/constant_weights.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(ConstantWeights, DerivesOncePerUserAndWeight) {
  ConstantWeights scope;
  const auto direct = std::make_shared<int>(1);
  const auto winograd = std::make_shared<int>(2);
  const Tensor a = Tensor::full({3}, 1);
  const Tensor b = Tensor::full({3}, 2);
  int made = 0;
  const auto derived = [&](const std::shared_ptr<int>& user, const Tensor& weight) {
    return scope.derived(user, weight, [&] { return Tensor::full({1}, ++made); }).item();
  };
  EXPECT_EQ(derived(direct, a), 1);
  EXPECT_EQ(derived(direct, b), 2);
  EXPECT_EQ(derived(winograd, a), 3);
  EXPECT_EQ(derived(direct, a), 1);
  EXPECT_EQ(derived(direct, b), 2);
  EXPECT_EQ(made, 3);
}

TEST(ConstantWeights, KeepsTheWeightWhoseAddressIsTheKey) {
  ConstantWeights scope;
  const auto user = std::make_shared<int>(1);
  for (int i = 0; i < 3; ++i) {  // otherwise the allocator would reuse the first weight's memory for the next one
    const Tensor weight = Tensor::full({7}, i);
    EXPECT_EQ(scope.derived(user, weight, [&] { return weight.clone(); }).to_vector<float>(), weight.to_vector<float>());
  }
}

TEST(ConstantWeights, ReleasesWhatWasMadeForUsersThatAreGone) {
  ConstantWeights scope;
  const Tensor weight = Tensor::full({3}, 1);
  const Tensor kept = Tensor::full({3}, 2);
  auto tried = std::make_shared<int>(1);
  const std::weak_ptr<int> trace = tried;
  scope.derived(tried, weight, [&] { return kept; });
  tried.reset();
  EXPECT_FALSE(trace.expired());
  scope.derived(std::make_shared<int>(2), weight, [&] { return kept; });
  EXPECT_TRUE(trace.expired());
}

TEST(ConstantWeights, TheNewestScopeOfAThreadHolds) {
  EXPECT_EQ(ConstantWeights::current(), nullptr);
  {
    const ConstantWeights outer;
    EXPECT_EQ(ConstantWeights::current(), &outer);
    {
      const ConstantWeights inner;
      EXPECT_EQ(ConstantWeights::current(), &inner);
    }
    EXPECT_EQ(ConstantWeights::current(), &outer);
  }
  EXPECT_EQ(ConstantWeights::current(), nullptr);
}

}  // namespace
}  // namespace tessera
