#include "compress/timing/timed_at.h"

#include <gtest/gtest.h>

#include "core/device/device_info.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

TEST(TimedAt, NamesTheThreadsOfTheCpu) {
  EXPECT_EQ(machine_text(Device::cpu(), 2), "2 threads");
  EXPECT_EQ(where_timed({.batch = 32, .machine = "2 threads"}), "batch 32, inference, 2 threads");
  EXPECT_EQ(where_timed({.batch = 1, .machine = "1 threads", .folded = true}), "batch 1, folded inference, 1 threads");
  EXPECT_EQ(where_timed({.batch = 8, .phase = Phase::training, .machine = "2 threads", .recompute = true}),
            "batch 8, training, recomputed, 2 threads");
  EXPECT_EQ(where_timed({.batch = 8, .phase = Phase::training, .machine = "2 threads", .compute = DType::bf16}),
            "batch 8, training, 2 threads, bf16");
}

TEST(TimedAt, DecodeNamesTheLengthOfItsSequences) {
  TimedAt at{.batch = 1, .phase = Phase::decode, .length = 256, .machine = "2 threads", .folded = true};
  EXPECT_EQ(where_timed(at), "batch 1, folded decode at length 256, 2 threads");
  at.phase = Phase::inference;
  EXPECT_EQ(where_timed(at), "batch 1, folded inference, 2 threads") << "which has no length of its own";
}

TEST(TimedAt, PhasesComeBackFromTheirNames) {
  for (const Phase phase : {Phase::inference, Phase::training, Phase::decode}) EXPECT_EQ(phase_named(name_of(phase)), phase);
  EXPECT_EQ(phase_names(), (std::vector<std::string_view>{"inference", "training", "decode"}));
  EXPECT_EQ(message_of<ConfigError>([] { phase_named("prefill"); }), "phase is 'prefill'; must be inference, training or decode");
}

// The keys of decisions end in these texts, so that no decision serves another machine or number format.
TEST(TimedAt, NamesAGpuInThePlaceOfThreads) {
  EXPECT_EQ(where_timed({.batch = 32, .machine = "NVIDIA H200"}), "batch 32, inference, NVIDIA H200");
  EXPECT_EQ(where_timed({.batch = 32, .machine = "NVIDIA H200", .tf32 = true}), "batch 32, inference, NVIDIA H200, tf32");
  EXPECT_EQ(where_timed({.batch = 32, .machine = "NVIDIA H200", .compute = DType::f16, .tf32 = true}),
            "batch 32, inference, NVIDIA H200, f16")
      << "products of f16 are of f16";
}

TEST(TimedAt, NoGpuHasNoName) {
  if (cuda_device_count() > 0) {
    EXPECT_EQ(machine_text(Device::cuda(), 2), device_info(Device::cuda()).name);
  } else {
    EXPECT_THROW(machine_text(Device::cuda(), 2), DeviceError);
  }
}

}  // namespace
}  // namespace tessera
