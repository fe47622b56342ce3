#include "train/report/state_diff.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tessera {
namespace {

Tensor floats(const std::vector<float>& values) { return Tensor::from(values, {static_cast<std::int64_t>(values.size())}); }

State state_of(const std::map<std::string, Tensor>& tensors) {
  State state;
  state.tensors = tensors;
  return state;
}

TEST(StateDiff, EqualBytesAreNoDifference) {
  const float nan = std::nanf("");
  const State a = state_of({{"w", floats({1, -0.0f, nan})}, {"none", floats({})}});
  EXPECT_TRUE(tensor_differences(a, state_of({{"w", floats({1, -0.0f, nan})}, {"none", floats({})}})).empty());
}

TEST(StateDiff, NamesTensorsAndTheirGreatestDistance) {
  const State a = state_of({{"b", floats({1, 2, 3})}, {"a", floats({1})}, {"equal", floats({4})}});
  const State b = state_of({{"b", floats({1, 2.5f, 2.75f})}, {"a", floats({-1})}, {"equal", floats({4})}});
  const auto found = tensor_differences(a, b);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "a");
  EXPECT_EQ(found[0].max_abs, 2);
  EXPECT_EQ(found[1].name, "b");
  EXPECT_EQ(found[1].max_abs, 0.5);
}

TEST(StateDiff, SeesWhatNoDistanceShows) {
  const float nan = std::nanf("");
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(tensor_differences(state_of({{"w", floats({0.0f})}}), state_of({{"w", floats({-0.0f})}})).at(0).max_abs, 0);
  EXPECT_EQ(tensor_differences(state_of({{"w", floats({inf, 1})}}), state_of({{"w", floats({inf, 3})}})).at(0).max_abs, 2);
  EXPECT_TRUE(std::isinf(tensor_differences(state_of({{"w", floats({nan})}}), state_of({{"w", floats({1})}})).at(0).max_abs));
}

TEST(StateDiff, StridedTensorsAreComparedByTheirElements) {
  const Tensor matrix = Tensor::from(std::vector<float>{1, 2, 3, 4}, {2, 2});
  const Tensor turned = Tensor::from(std::vector<float>{1, 3, 2, 4}, {2, 2}).permute({1, 0});
  EXPECT_TRUE(tensor_differences(state_of({{"w", matrix}}), state_of({{"w", turned}})).empty());
}

TEST(StateDiff, ShapesAndStrangersComeFirst) {
  const State a = state_of({{"w", floats({1, 2})}, {"gone", floats({1})}, {"moved", floats({1})}});
  const State b = state_of({{"w", floats({1})}, {"new", floats({1})}, {"moved", floats({9})}});
  const auto found = greatest(tensor_differences(a, b), 4);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].what, "only in a: f32 [1]");
  EXPECT_EQ(found[1].what, "only in b: f32 [1]");
  EXPECT_EQ(found[2].what, "f32 [2], f32 [1]");
  EXPECT_EQ(found[3].name, "moved");
  EXPECT_EQ(greatest(tensor_differences(a, b), 1).size(), 1u);
}

}  // namespace
}  // namespace tessera
