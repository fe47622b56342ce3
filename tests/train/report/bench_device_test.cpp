#include "train/report/bench_device.h"

#include <gtest/gtest.h>

#include "train/run/environment.h"

namespace tessera {
namespace {

TEST(BenchDevice, AGpuIsToldWithDriverAndLibraries) {
  EXPECT_EQ(gpu_text({.name = "NVIDIA H200",
                      .capability = "9.0",
                      .driver = "13.0",
                      .libraries = "CUDA 13.0, cuDNN 9.19.0, cuBLASLt 13.1.0"}),
            "NVIDIA H200 (9.0), driver for CUDA 13.0, CUDA 13.0, cuDNN 9.19.0, cuBLASLt 13.1.0");
}

TEST(BenchDevice, TheCpusSetupIsItsOwn) { EXPECT_EQ(setup_text(Device::cpu()), setup_text()); }

}  // namespace
}  // namespace tessera
