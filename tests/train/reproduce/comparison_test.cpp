// Which arms are timed together, which arm they are compared with, and which arms may not name each other.
#include <gtest/gtest.h>

#include <utility>

#include "train/reproduce/comparison.h"

namespace tessera::testing {
namespace {

ArmRow row(const std::string& arm, const std::string& against, std::int64_t length) {
  ArmRow made{.arm = arm, .input = {1, length}, .against = against};
  made.cells.emplace_back();
  made.cells.back().key = "key of " + arm;
  made.cells.back().seed = 1;
  return made;
}

// The baseline is the second row.
std::vector<ArmRow> rows() {
  return {row("small", "dense", 256), row("dense", "dense", 256), row("dense-long", "dense", 1024),
          row("sparse-long", "dense-long", 1024)};
}

using Places = std::vector<std::size_t>;

TEST(Comparisons, ArmsAreTimedWithTheOneThatTheyAreComparedWith) {
  const std::vector<ArmRow> all = rows();
  const std::vector<TimedGroup> groups = timed_groups(all);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].rows, Places({1, 0})) << "the baseline first";
  EXPECT_EQ(groups[1].rows, Places({2, 3})) << "the baseline reads another input";
  EXPECT_NE(groups[0].key, groups[1].key);
}

TEST(Comparisons, AnArmMayStandInTwoGroups) {
  std::vector<ArmRow> all = rows();
  all.push_back(row("smaller", "small", 256));
  const std::vector<TimedGroup> groups = timed_groups(all);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].rows, Places({1, 0}));
  EXPECT_EQ(groups[2].rows, Places({0, 4}));
  EXPECT_EQ(groups[0].key, timed_groups(rows())[0].key) << "it changes nothing for the others";
  EXPECT_EQ(groups[1].key, timed_groups(rows())[1].key);
}

TEST(Comparisons, AnArmWithoutANetworkIsNotTimedAndOthersAreTimedAlone) {
  std::vector<ArmRow> all = rows();
  all[1].cells.clear();
  all[2].cells.clear();
  const std::vector<TimedGroup> groups = timed_groups(all);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].rows, Places({0}));
  EXPECT_EQ(groups[1].rows, Places({3}));
}

// Results from before arms could name others stay valid: the key uses the order of the table, whichever arm is the baseline.
TEST(Comparisons, KeysAreThoseOfTheNetworksInTheirOrder) {
  std::vector<ArmRow> all = rows();
  all.resize(2);
  const std::string key = timed_groups(all)[0].key;
  for (ArmRow& each : all) each.against = "small";
  EXPECT_EQ(timed_groups(all)[0].rows, Places({0, 1}));
  EXPECT_EQ(timed_groups(all)[0].key, key);
  std::swap(all[0], all[1]);
  EXPECT_NE(timed_groups(all)[0].key, key);
}

TEST(Comparisons, AnArmMayNotNameOneOfAnotherInput) {
  TableFile table;
  table.arms.resize(3);
  for (std::size_t i = 0; i < 3; ++i) table.arms[i].name = std::string(1, "abc"[i]);
  table.arms[2].against = "b";
  const auto problems_with = [&](const std::vector<Shape>& named, const std::vector<Shape>& arm) {
    std::vector<ArmChoice> choices(3);
    for (std::size_t i = 0; i < 3; ++i) choices[i].arm = &table.arms[i];
    choices[0].inputs = {{1, 1024}, {1, 1024}};
    choices[1].inputs = named;
    choices[2].inputs = arm;
    std::vector<ConfigProblem> problems;
    find_incomparable(table, choices, problems);
    return problems;
  };
  EXPECT_TRUE(problems_with({{1, 256}, {1, 256}}, {{1, 256}, {1, 256}}).empty()) << "a and b are not compared by speed";
  EXPECT_TRUE(problems_with({}, {{1, 256}}).empty()) << "one whose experiment is wrong";
  const auto other = problems_with({{1, 256}, {1, 256}}, {{1, 64}, {1, 64}});
  ASSERT_EQ(other.size(), 1u);
  EXPECT_EQ(other[0].path, "arms[2].against");
  EXPECT_EQ(other[0].message,
            "'b' reads samples of [256], this arm of [64]; networks are timed against each other on inputs of one shape");
  EXPECT_EQ(problems_with({{1, 256}, {1, 64}}, {{1, 256}, {1, 64}}).size(), 1u) << "each chooses for itself";
}

}  // namespace
}  // namespace tessera::testing
