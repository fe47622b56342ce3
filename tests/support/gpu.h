// Tests that need a GPU: skipped, with the reason, where there is none.
#pragma once

#include <gtest/gtest.h>

#include "core/device_info.h"

namespace tessera::testing {

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "needs a GPU: " << why_no_cuda();
  }

  static constexpr Device gpu() { return Device::cuda(); }
};

// The same for a suite over parameters.
template <class Parameter>
class GpuTestWithParam : public GpuTest, public ::testing::WithParamInterface<Parameter> {};

}  // namespace tessera::testing
