// Compares the planner's model of core convolutions with times of an H100 80GB HBM3 (`cuda_op_bench --part core`, 39eb34ea).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/tdc_shapes.h"
#include "core/cuda/core_conv/core_conv.h"
#include "tests/support/gpu_limits.h"

namespace tessera::cuda {
namespace {

struct MeasuredTile {
  int tile;  // index in kFullTiles
  int splits;
  double microseconds;
};

struct MeasuredCore {
  bench::TdcCore core;
  double library;  // cuDNN's fastest algorithm, in microseconds
  std::vector<MeasuredTile> near;  // tiles within 15 % of the fastest, which comes first
};

// f32, one image, forward.
const std::vector<MeasuredCore> kMeasured{
    {{64, 32, 224}, 66.3,
     {{2, 1, 56.38}, {0, 1, 59.42}, {2, 2, 63.91}}},
    {{64, 32, 112}, 27.1,
     {{0, 2, 20.26}, {4, 2, 20.94}, {1, 1, 21.21}, {2, 1, 21.78}, {2, 4, 22.14}, {1, 2, 22.77}, {0, 4, 23.06}, {2, 2, 23.26}}},
    {{32, 32, 56}, 12.7,
     {{7, 1, 7.77}, {1, 4, 8.07}, {4, 4, 8.15}, {2, 4, 8.33}, {6, 1, 8.52}, {4, 1, 8.62}, {4, 2, 8.68}, {5, 1, 8.80},
      {0, 4, 8.89}}},
    {{64, 32, 56}, 22.1,
     {{4, 8, 9.86}, {0, 8, 10.00}, {1, 8, 10.07}, {1, 4, 10.21}, {2, 8, 10.22}, {2, 4, 10.42}, {4, 4, 10.49}, {4, 5, 10.82},
      {4, 2, 11.00}}},
    {{64, 64, 56}, 22.1,
     {{0, 4, 13.13}, {4, 4, 13.15}, {5, 1, 13.47}, {1, 4, 14.05}, {2, 4, 14.36}, {1, 2, 14.49}, {4, 1, 14.56}, {4, 5, 14.69},
      {3, 4, 14.88}, {2, 2, 14.94}}},
    {{32, 32, 28}, 12.5,
     {{7, 1, 5.56}, {8, 1, 5.84}, {9, 1, 6.18}, {6, 1, 6.24}}},
    {{64, 32, 28}, 21.1,
     {{4, 8, 6.90}, {1, 8, 7.03}, {2, 8, 7.20}, {7, 4, 7.24}, {4, 4, 7.71}, {7, 1, 7.81}, {6, 4, 7.92}}},
    {{96, 64, 28}, 30.5,
     {{0, 12, 9.11}, {4, 12, 9.24}, {4, 4, 9.40}, {1, 12, 9.51}, {1, 8, 9.58}, {2, 12, 9.77}, {2, 8, 9.84}, {1, 7, 9.97},
      {1, 6, 9.97}, {3, 12, 10.06}, {4, 8, 10.09}, {2, 6, 10.22}, {2, 7, 10.22}, {4, 6, 10.36}, {5, 3, 10.44}}},
    {{160, 96, 28}, 44.5,
     {{0, 11, 13.00}, {0, 10, 13.07}, {1, 10, 14.10}, {1, 11, 14.38}, {1, 5, 14.44}, {2, 10, 14.50}, {2, 11, 14.51},
      {2, 5, 14.79}, {4, 8, 14.87}}},
    {{192, 96, 28}, 51.2,
     {{0, 8, 15.53}, {0, 9, 15.64}, {4, 8, 15.87}, {0, 10, 15.92}, {0, 11, 16.05}, {1, 5, 16.45}, {2, 5, 17.00},
      {4, 11, 17.40}, {1, 8, 17.45}, {3, 8, 17.56}, {1, 9, 17.75}, {2, 8, 17.79}}},
    {{32, 32, 14}, 12.6,
     {{8, 1, 4.33}, {10, 1, 4.44}, {9, 1, 4.48}, {7, 1, 4.67}}},
    {{64, 32, 14}, 16.0,
     {{10, 1, 5.40}, {7, 4, 5.66}, {9, 1, 5.79}, {4, 8, 5.90}, {8, 4, 5.94}, {8, 1, 6.11}}},
    {{128, 96, 14}, 27.6,
     {{1, 16, 7.30}, {4, 16, 7.35}, {2, 16, 7.55}, {5, 8, 7.85}, {4, 8, 7.87}, {4, 9, 8.05}, {4, 11, 8.32}, {4, 10, 8.33}}},
    {{192, 96, 14}, 35.8,
     {{4, 8, 9.35}, {1, 16, 9.55}, {4, 9, 9.58}, {1, 12, 9.65}, {2, 16, 9.76}, {4, 16, 9.81}, {4, 11, 9.82}, {4, 10, 9.82},
      {1, 13, 9.94}, {5, 8, 9.98}, {2, 12, 9.98}, {7, 4, 10.01}, {6, 4, 10.01}, {4, 12, 10.09}, {1, 15, 10.10}, {5, 9, 10.14},
      {5, 6, 10.14}, {1, 14, 10.14}, {2, 13, 10.14}, {4, 13, 10.17}, {7, 5, 10.30}, {5, 7, 10.33}, {2, 15, 10.35},
      {2, 14, 10.38}, {4, 15, 10.41}, {6, 5, 10.43}, {4, 14, 10.45}, {5, 11, 10.58}, {5, 10, 10.60}}},
    {{32, 32, 7}, 11.4,
     {{10, 1, 3.45}}},
    {{64, 32, 7}, 14.1,
     {{10, 1, 4.42}}},
    {{96, 64, 7}, 19.9,
     {{10, 1, 5.56}, {10, 3, 5.85}, {7, 6, 5.90}, {8, 6, 5.92}, {4, 12, 6.09}, {8, 4, 6.21}, {9, 3, 6.29}, {8, 3, 6.33}}},
    {{192, 160, 7}, 52.0,
     {{6, 12, 7.41}, {7, 12, 7.48}, {5, 12, 7.73}, {4, 16, 7.85}, {7, 6, 7.90}, {7, 4, 7.99}, {4, 12, 8.00}, {7, 7, 8.16},
      {4, 13, 8.28}, {6, 8, 8.30}, {7, 8, 8.37}, {7, 5, 8.41}}},
};

std::vector<CoreConvPlan> candidates(const bench::TdcCore& core) {
  const std::int64_t size = core.size;
  const Conv2dGeometry geometry{1, size, size, core.in, core.out, 3, 3, size, size, {.stride = {1, 1}, .padding = {1, 1}}};
  return core_conv_candidates(Conv2dPass::forward, geometry, DType::f32, kH100, nullptr);
}

TEST(CoreConvMeasured, ThePlannedTileIsNearlyTheFastest) {
  ASSERT_EQ(kMeasured.size(), std::size(bench::kTdcCores));
  double logs = 0;
  for (const auto& [core, library, near] : kMeasured) {
    const CoreConvPlan plan = candidates(core).front();
    const auto found = std::ranges::find_if(
        near, [&](const MeasuredTile& tile) { return tile.tile == plan.tile && tile.splits == plan.splits(); });
    ASSERT_NE(found, near.end()) << core.size << ", " << core.in << " -> " << core.out << ": " << describe(plan);
    logs += std::log(near.front().microseconds / found->microseconds);
  }
  EXPECT_GE(std::exp(logs / static_cast<double>(kMeasured.size())), 0.97);
}

TEST(CoreConvMeasured, PredictionsAreTheTimesOfFastTiles) {
  double squares = 0, count = 0;
  for (const auto& [core, library, near] : kMeasured) {
    const std::vector<CoreConvPlan> plans = candidates(core);
    for (const MeasuredTile& tile : near) {
      const auto plan = std::ranges::find_if(
          plans, [&](const CoreConvPlan& one) { return one.tile == tile.tile && one.splits() == tile.splits; });
      ASSERT_NE(plan, plans.end());
      const double error = std::log(plan->seconds * 1e6 / tile.microseconds);
      EXPECT_LE(std::abs(error), 0.3) << core.size << ", " << core.in << " -> " << core.out << ": " << describe(*plan);
      squares += error * error;
      ++count;
    }
  }
  EXPECT_LE(std::sqrt(squares / count), 0.1);
}

TEST(CoreConvMeasured, TheLibraryLosesWhereItLost) {
  for (const auto& [core, library, near] : kMeasured) {
    const CoreConvPlan plan = candidates(core).front();
    EXPECT_EQ(plan.seconds <= plan.library_seconds, near.front().microseconds <= library);
    const double error = std::log(plan.library_seconds * 1e6 / library);
    EXPECT_LE(std::abs(error), 0.35) << core.size << ", " << core.in << " -> " << core.out;
  }
}

}  // namespace
}  // namespace tessera::cuda
