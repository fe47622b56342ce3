// Steps that several ranks take together on their GPUs. Run by mpirun.
#include <gtest/gtest.h>

#include "tests/support/gpu.h"
#include "tests/train/run/ranked_steps.h"

namespace tessera::testing {
namespace {

using CudaRankedStep = GpuTest;

TEST_F(CudaRankedStep, HasTheBytesOfOneProcessInMicroBatches) {
  EXPECT_EQ(of_ranks({}, false, gpu()), alone(share(), false, gpu()));
}

TEST_F(CudaRankedStep, AllRanksHoldTheSame) {
  expect_the_same_on_all_ranks(of_ranks({}, true, gpu()));
  expect_the_same_on_all_ranks(of_ranks(share() / 2, true, gpu()));
}

// Equal to the CPU's up to rounding.
TEST_F(CudaRankedStep, RunningStatisticsAreTheMeansOfTheRanks) {
  const auto statistics = [](Device device) {
    const auto model = network(true, device);
    StageTrainer trainer = trainer_of(*model, settings());
    after_steps(*model, trainer, true);
    std::vector<float> all;
    for (const NamedBuffer& entry : named_buffers(*model)) {
      const std::vector<float> values = entry.buffer->value.to_vector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  const std::vector<float> on_gpu = statistics(gpu()), on_cpu = statistics(Device::cpu());
  ASSERT_EQ(on_cpu.size(), 14u);
  expect_near(on_gpu, on_cpu, 1e-4);
}

}  // namespace
}  // namespace tessera::testing
