// Which checkpoints the disk plan of three stages counts as kept.
#include "train/plan/disk_plan.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

constexpr std::int64_t kEpoch = 10;  // steps

// The disk plans of stages, from the bytes of their training checkpoints (0 = no training) and their epochs.
std::vector<DiskPlan> kept(const std::vector<std::int64_t>& bytes, const CheckpointConfig& config,
                           const std::vector<std::int64_t>& epochs, bool validates = true) {
  std::vector<DiskPlan> stages;
  std::vector<std::int64_t> steps;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    stages.push_back({.training_bytes = bytes[i], .end_bytes = 1});
    steps.push_back(epochs[i] * kEpoch);
  }
  plan_kept(stages, steps, config, kEpoch, validates);
  return stages;
}

using Counts = std::vector<std::int64_t>;

Counts of(const std::vector<DiskPlan>& stages, std::int64_t DiskPlan::*count) {
  Counts counts;
  for (const DiskPlan& stage : stages) counts.push_back(stage.*count);
  return counts;
}

TEST(DiskPlanBests, EachStagesIsCounted) {
  const std::vector<DiskPlan> stages = kept({500, 300, 400}, {.keep = 1}, {3, 3, 3});
  EXPECT_EQ(of(stages, &DiskPlan::best), (Counts{1, 1, 1}));
  EXPECT_EQ(of(stages, &DiskPlan::replaced), (Counts{0, 0, 0}));
  EXPECT_EQ(of(stages, &DiskPlan::newest), (Counts{0, 0, 1}));
  EXPECT_EQ(stages[0].bytes() + stages[1].bytes() + stages[2].bytes(), 3 + 500 + 300 + 2 * 400);
}

TEST(DiskPlanBests, OfARunTheNewestAndTheLargestThatIsReplaced) {
  const std::vector<DiskPlan> stages = kept({300, 500, 400}, {.keep = 1, .keep_best = "run"}, {3, 3, 3});
  EXPECT_EQ(of(stages, &DiskPlan::best), (Counts{0, 0, 1}));
  EXPECT_EQ(of(stages, &DiskPlan::replaced), (Counts{0, 1, 0}));
  EXPECT_EQ(of(stages, &DiskPlan::newest), (Counts{0, 0, 1}));
  EXPECT_EQ(stages[0].bytes() + stages[1].bytes() + stages[2].bytes(), 3 + 500 + 2 * 400);
}

// A stage of three epochs saves twice before its end. A released best counts among the newest if those reach back that far.
TEST(DiskPlanBests, OneThatWasLetGoIsLikeAnyOther) {
  const std::vector<DiskPlan> stages = kept({300, 500, 400}, {.keep = 9, .keep_best = "run"}, {3, 3, 3});
  EXPECT_EQ(of(stages, &DiskPlan::best), (Counts{0, 0, 1}));
  EXPECT_EQ(of(stages, &DiskPlan::replaced), (Counts{0, 1, 0}));
  EXPECT_EQ(of(stages, &DiskPlan::newest), (Counts{2, 1, 1}));
}

// A stage without training has no best. The best of a one-epoch stage is its end, and it still replaces the earlier bests.
TEST(DiskPlanBests, TheNewestStageThatValidatesHasIt) {
  const std::vector<DiskPlan> pass_last = kept({300, 500, 0}, {.keep = 1, .keep_best = "run"}, {3, 3, 0});
  EXPECT_EQ(of(pass_last, &DiskPlan::best), (Counts{0, 1, 0}));
  EXPECT_EQ(of(pass_last, &DiskPlan::replaced), (Counts{1, 0, 0}));
  const std::vector<DiskPlan> short_last = kept({300, 500, 400}, {.keep = 1, .keep_best = "run"}, {3, 3, 1});
  EXPECT_EQ(of(short_last, &DiskPlan::best), (Counts{0, 0, 0}));
  EXPECT_EQ(of(short_last, &DiskPlan::replaced), (Counts{0, 1, 0}));
}

TEST(DiskPlanBests, NoneAreCountedWithoutValidationOrWithBestOff) {
  for (const auto& stages : {kept({300, 500, 400}, {.keep = 1, .keep_best = "run"}, {3, 3, 3}, false),
                             kept({300, 500, 400}, {.keep = 1, .best = false, .keep_best = "run"}, {3, 3, 3})}) {
    EXPECT_EQ(of(stages, &DiskPlan::best), (Counts{0, 0, 0}));
    EXPECT_EQ(of(stages, &DiskPlan::replaced), (Counts{0, 0, 0}));
  }
}

}  // namespace
}  // namespace tessera
