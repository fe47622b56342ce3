// The plan of the fused Tucker-2 convolution against an exhaustive search of its own model, and its refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/core/cuda/tucker_conv_support.h"

namespace tessera::cuda {
namespace {

TEST(TuckerConvPlan, TheChoiceIsTheBestOfAllCandidates) {
  for (const Limits& limits : {kH100, kA100}) {
    for (const TuckerMath math : {TuckerMath::f32, TuckerMath::tf32, TuckerMath::bf16, TuckerMath::f16}) {
      for (const auto& core : kTdc) {
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
        EXPECT_EQ(planning.wins, sum < planning.unfused.seconds);
        EXPECT_EQ(planning.reason.empty(), planning.wins);
      }
    }
  }
}

TEST(TuckerConvPlan, SmallImagesAreFusedLargeBatchesAreNot) {
  EXPECT_TRUE(plan_tucker_conv(tdc(kTdc[11]), false, kA100).wins);
  TuckerConvShape batch = tdc(kTdc[8]);
  batch.images = 256;
  EXPECT_FALSE(plan_tucker_conv(batch, true, kA100).wins);
}

TEST(TuckerConvPlan, RefusalsSayWhy) {
  const auto reason = [](const TuckerConvShape& conv, const Limits& limits) {
    const TuckerPlanning planning = plan_tucker_conv(conv, true, limits);
    EXPECT_FALSE(planning.plan.has_value());
    EXPECT_FALSE(planning.wins);
    return planning.reason;
  };
  TuckerConvShape conv = tdc(kTdc[3]);
  conv.stride = {3, 3};
  EXPECT_EQ(reason(conv, kH100), "the stride is 3x3; the kernels take 1 and 2");
  conv = tdc(kTdc[3]);
  conv.in_factor = conv.out_factor = false;
  EXPECT_EQ(reason(conv, kH100), "there is no factor to fuse with the core");
  conv = tdc(kTdc[3]);
  conv.rank_in = conv.in = 6000;
  EXPECT_EQ(reason(conv, kH100), "ranks of 6000 and 32 do not fit 232448 bytes of shared memory");
  Limits old = kH100;
  old.capability = 75;
  EXPECT_EQ(reason(tdc(kTdc[3]), old), "the GPU's compute capability is 75; the kernels need 80");
  conv = tdc(kTdc[3]);
  conv.images = 0;
  EXPECT_EQ(reason(conv, kH100), "the batch is empty");
  conv = tdc(kTdc[3]);
  conv.padding = {3, 1};
  EXPECT_EQ(reason(conv, kH100), "the padding, 3x1, is not smaller than the kernel, 3x3");
}

}  // namespace
}  // namespace tessera::cuda
