// Tests that need a GPU: skipped, with the reason, where there is none.
#pragma once

#include <gtest/gtest.h>

#include "core/cuda/runtime/limits.h"
#include "core/device/device_info.h"

namespace tessera::testing {

// No more than any GPU that the kernels are for has: what fits it can be launched on each.
inline constexpr cuda::Limits kSmallestGpu{.processors = 4, .capability = 80, .threads_per_processor = 1536,
                                           .shared_per_block = 99 << 10, .shared_per_processor = 100 << 10, .l2 = 4 << 20};

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string why = cuda_device_count() == 0 ? why_no_cuda() : why_unusable(gpu());
    if (!why.empty()) GTEST_SKIP() << "needs a GPU: " << why;
  }

  static constexpr Device gpu() { return Device::cuda(); }
};

// The same for a suite over parameters.
template <class Parameter>
class GpuTestWithParam : public GpuTest, public ::testing::WithParamInterface<Parameter> {};

}  // namespace tessera::testing
