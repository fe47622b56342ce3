// Compares the fused Tucker-2 convolution's plan with an exhaustive search of its model; tests its refusals and who owns a pixel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/core/cuda/tucker_conv/support.h"

namespace tessera::cuda {
namespace {

TEST(TuckerConvPlan, TheChoiceIsTheBestOfAllCandidates) {
  for (const Limits& limits : {kH100, kA100}) {
    for (const TuckerMath math : {TuckerMath::f32, TuckerMath::tf32, TuckerMath::bf16, TuckerMath::f16}) {
      for (const auto& core : kTdcCores) {
        TuckerConvShape conv = tdc(core);
        conv.math = math;
        const TuckerPlanning planning = plan_tucker_conv(conv, true, limits);
        ASSERT_TRUE(planning.plan.has_value()) << planning.reason;
        double sum = correlations_estimate(conv, planning.plan->walkers, limits).seconds;
        for (const bool backward : {false, true}) {
          double least = 1;
          for (const ChainCandidate& candidate : chain_candidates(conv, backward, limits)) {
            EXPECT_LE(static_cast<std::size_t>(candidate.shared), limits.shared_per_block);
            EXPECT_GT(candidate.seconds, 0);
            const double needed = unfused_estimate(conv, false, limits).flops;
            EXPECT_GE(candidate.flops, needed) << "blocks recompute, they skip nothing";
            least = std::min(least, candidate.seconds);
          }
          EXPECT_EQ(backward ? planning.plan->backward.seconds : planning.plan->forward.seconds, least);
          sum += least;
        }
        EXPECT_DOUBLE_EQ(planning.plan->seconds, sum);
        EXPECT_EQ(planning.wins, sum * 1.15 < planning.unfused.seconds);
        EXPECT_EQ(planning.reason.empty(), planning.wins);
      }
    }
  }
}

TEST(TuckerConvPlan, ChainsOfFewSlicesAreFusedLargeBatchesAreNot) {
  for (const Limits& limits : {kH100, kA100}) {
    TuckerConvShape conv = tdc(kTdcCores[14]);
    conv.rank_in = conv.rank_out = 16;
    conv.kernel = {1, 1};
    conv.padding = {0, 0};
    EXPECT_TRUE(plan_tucker_conv(conv, false, limits).wins);
    conv.h = conv.w = 56;
    conv.images = 256;
    EXPECT_FALSE(plan_tucker_conv(conv, true, limits).wins);
  }
}

// Microseconds of TDC's first 13 shapes in f32, one image, measured on an H100 80GB HBM3 (`cuda_op_bench --part tucker`,
// c3b79fa2): as three convolutions, and fused with the fastest of all blocks and tiles.
struct MeasuredTucker {
  double three, fused;
};
constexpr MeasuredTucker kMeasured[] = {
    {99.6, 191.4},  // 1x224x224x128 -> 64 -> 32 -> 64, 3x3
    {36.6, 78.0},  // 1x112x112x128 -> 64 -> 32 -> 64, 3x3
    {15.0, 22.3},  // 1x56x56x64 -> 32 -> 32 -> 64, 3x3
    {20.1, 43.9},  // 1x56x56x128 -> 64 -> 32 -> 64, 3x3
    {24.7, 53.4},  // 1x56x56x128 -> 64 -> 64 -> 128, 3x3
    {16.5, 19.3},  // 1x28x28x64 -> 32 -> 32 -> 64, 3x3
    {19.0, 36.7},  // 1x28x28x128 -> 64 -> 32 -> 64, 3x3
    {22.3, 73.6},  // 1x28x28x192 -> 96 -> 64 -> 128, 3x3
    {28.7, 202.7},  // 1x28x28x320 -> 160 -> 96 -> 192, 3x3
    {31.0, 241.3},  // 1x28x28x384 -> 192 -> 96 -> 192, 3x3
    {15.1, 18.5},  // 1x14x14x64 -> 32 -> 32 -> 64, 3x3
    {16.6, 32.3},  // 1x14x14x128 -> 64 -> 32 -> 64, 3x3
    {21.8, 125.0},  // 1x14x14x256 -> 128 -> 96 -> 192, 3x3
};

TEST(TuckerConvPlan, ThreeConvolutionsWinWhereTheyWon) {
  for (std::size_t i = 0; i < std::size(kMeasured); ++i) {
    const TuckerPlanning planning = plan_tucker_conv(tdc(kTdcCores[i]), false, kH100);
    ASSERT_TRUE(planning.plan.has_value()) << planning.reason;
    EXPECT_EQ(planning.wins, kMeasured[i].fused < kMeasured[i].three) << i;
    EXPECT_LE(std::abs(std::log(planning.plan->seconds * 1e6 / kMeasured[i].fused)), 0.15) << i;
    EXPECT_LE(std::abs(std::log(planning.unfused.seconds * 1e6 / kMeasured[i].three)), 0.25) << i;
  }
}

TEST(TuckerConvGeometry, EveryPixelThatIsReadHasOneOwner) {
  for (const bool backward : {false, true}) {
    for (int image = 1; image <= 12; ++image) {
      for (int kernel = 1; kernel <= 5; ++kernel) {
        for (int stride = 1; stride <= 2; ++stride) {
          for (int padding = 0; padding < kernel; ++padding) {
            if (image + 2 * padding < kernel) continue;
            const PassAxes axes{{image, (image + 2 * padding - kernel) / stride + 1, kernel, stride, padding}, backward};
            for (int tile = 1; tile <= 5; ++tile) {
              std::vector<int> owners(static_cast<std::size_t>(axes.inputs())), readers(owners.size());
              for (int cls = 0; cls < axes.classes(); ++cls) {
                const PassAxis axis = axes.at(cls);
                for (int first = 0; first < axis.outs; first += tile) {
                  for (int r = 0; axis.taps > 0 && r < window_of(axis, tile); ++r) {
                    const int q = first * axis.stride + axis.origin + r;
                    if (q >= 0 && q < axes.inputs()) owners[static_cast<std::size_t>(q)] += owns(axes, cls, first, tile, q);
                  }
                }
                for (int i = 0; i < axis.outs; ++i) {
                  for (int a = 0; a < axis.taps; ++a) {
                    const int q = i * axis.stride + axis.origin + a;
                    if (q >= 0 && q < axes.inputs()) ++readers[static_cast<std::size_t>(q)];
                  }
                }
              }
              for (std::size_t q = 0; q < owners.size(); ++q) {
                EXPECT_LE(owners[q], 1);
                EXPECT_GE(owners[q], readers[q] > 0);
                if (backward) {
                  EXPECT_GT(readers[q], 0) << "every gradient of a window reaches a pixel";
                }
              }
            }
          }
        }
      }
    }
  }
}

TEST(TuckerConvPlan, RefusalsSayWhy) {
  const auto reason = [](const TuckerConvShape& conv, const Limits& limits) {
    const TuckerPlanning planning = plan_tucker_conv(conv, true, limits);
    EXPECT_FALSE(planning.plan.has_value());
    EXPECT_FALSE(planning.wins);
    return planning.reason;
  };
  TuckerConvShape conv = tdc(kTdcCores[3]);
  conv.stride = {3, 3};
  EXPECT_EQ(reason(conv, kH100), "the stride is 3x3; the kernels take 1 and 2");
  conv = tdc(kTdcCores[3]);
  conv.in_factor = conv.out_factor = false;
  EXPECT_EQ(reason(conv, kH100), "there is no factor to fuse with the core");
  conv = tdc(kTdcCores[3]);
  conv.rank_in = conv.in = 6000;
  EXPECT_EQ(reason(conv, kH100), "ranks of 6000 and 32 do not fit 232448 bytes of shared memory");
  Limits old = kH100;
  old.capability = 75;
  EXPECT_EQ(reason(tdc(kTdcCores[3]), old), "the GPU's compute capability is 75; the kernels need 80");
  conv = tdc(kTdcCores[3]);
  conv.images = 0;
  EXPECT_EQ(reason(conv, kH100), "the batch is empty");
  conv = tdc(kTdcCores[3]);
  conv.in = conv.rank_in = 400000;
  EXPECT_EQ(reason(conv, kH100), "a size is more than the kernels can count in 32 bits");
  conv = {.h = 1, .w = 1, .rank_in = 9000, .rank_out = 9000, .kernel = {1, 1}, .stride = {2, 2}, .padding = {0, 0}};
  EXPECT_EQ(reason(conv, kH100), "the weights' gradients have 79838 groups of sums; the kernels take 65535");
  EXPECT_TRUE(plan_tucker_conv(conv, false, kH100).plan.has_value()) << "without a backward pass";
  conv = tdc(kTdcCores[3]);
  conv.padding = {3, 1};
  EXPECT_EQ(reason(conv, kH100), "the padding, 3x1, is not smaller than the kernel, 3x3");
}

}  // namespace
}  // namespace tessera::cuda
