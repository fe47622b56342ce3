#include "core/cpu/stream_peak.h"

#include <gtest/gtest.h>

#include "core/tensor.h"

namespace tessera::cpu {
namespace {

TEST(StreamPeak, BothPassesScaleEveryElementAndNoOther) {
  constexpr std::int64_t kCount = 8 * 37;
  for (const auto pass : {stream_scale, stream_scale_past_caches}) {
    for (const int threads : {1, 2, 3}) {
      const Tensor x = Tensor::zeros({kCount + 8});
      const Tensor y = Tensor::zeros({kCount + 8});
      for (std::int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(i + 1);
      pass(x.data<float>(), y.data<float>(), kCount, threads);
      const float factor = y.data<float>()[0];
      EXPECT_NE(factor, 0.0f);
      for (std::int64_t i = 0; i < kCount; ++i) ASSERT_EQ(y.data<float>()[i], factor * static_cast<float>(i + 1)) << i;
      for (std::int64_t i = kCount; i < y.numel(); ++i) ASSERT_EQ(y.data<float>()[i], 0.0f) << i;
    }
  }
}

}  // namespace
}  // namespace tessera::cpu
