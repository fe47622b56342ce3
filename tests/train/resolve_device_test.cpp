#include "train/resolve_device.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

const Gpus kNone{.count = 0, .why_none = "no CUDA driver is installed", .unusable = {}};
const Gpus kOne{.count = 1, .why_none = "", .unusable = {}, .taken_by_auto = true};
const Gpus kFour{.count = 4, .why_none = "", .unusable = {}, .taken_by_auto = true};
const std::string kOld = "it has compute capability 8.0, this build has kernels for 9.0 and newer";
const Gpus kOneOld{.count = 1, .why_none = "", .unusable = {{0, kOld}}, .taken_by_auto = true};
const Gpus kOldAndNew{.count = 2, .why_none = "", .unusable = {{0, kOld}}, .taken_by_auto = true};

TEST(ResolveDevice, AutoTakesTheFirstGpuAndOtherwiseTheCpu) {
  EXPECT_EQ(resolve_device("auto", kNone), Device::cpu());
  EXPECT_EQ(resolve_device("auto", kFour), Device::cuda(0));
  EXPECT_EQ(choice_of_device("auto", kNone), "device: auto is the CPU: no CUDA driver is installed");
  EXPECT_EQ(choice_of_device("auto", kOne), "device: auto is cuda:0");
}

TEST(ResolveDevice, AutoLeavesAGpuThatIsNotTestedAlone) {
  Gpus gpus = kOldAndNew;
  gpus.taken_by_auto = false;
  EXPECT_EQ(resolve_device("auto", gpus), Device::cpu());
  EXPECT_EQ(choice_of_device("auto", gpus),
            "device: auto is the CPU: not all tests of computing on GPUs have passed on one yet; device=cuda:1 takes the first");
  EXPECT_EQ(resolve_device("cuda:1", gpus), Device::cuda(1));
  EXPECT_FALSE(Gpus().taken_by_auto);  // until docs/gpu-status.md names a GPU
}

TEST(ResolveDevice, ANameIsItselfAndNoChoice) {
  EXPECT_EQ(resolve_device("cpu", kFour), Device::cpu());
  EXPECT_EQ(resolve_device("cuda", kOne), Device::cuda(0));
  EXPECT_EQ(resolve_device("cuda:3", kFour), Device::cuda(3));
  for (const char* name : {"cpu", "cuda", "cuda:3"}) EXPECT_EQ(choice_of_device(name, kFour), "");
}

TEST(ResolveDevice, AGpuThatIsNotThereIsRefusedWithTheReason) {
  const auto refusal = [](const char* name, const Gpus& gpus) {
    return message_of<ConfigError>([&] { resolve_device(name, gpus); });
  };
  EXPECT_EQ(refusal("cuda", kNone), "device is cuda:0, but no CUDA driver is installed; use cpu or auto");
  EXPECT_EQ(refusal("cuda:2", kNone), "device is cuda:2, but no CUDA driver is installed; use cpu or auto");
  EXPECT_EQ(refusal("cuda:1", kOne), "device is cuda:1, but there is 1 GPU, cuda:0; use one of them, cpu or auto");
  EXPECT_EQ(refusal("cuda:4", kFour), "device is cuda:4, but there are 4 GPUs, cuda:0 to cuda:3; use one of them, cpu or auto");
}

TEST(ResolveDevice, AGpuThatTheBuildHasNoKernelsForIsLeftOut) {
  EXPECT_EQ(resolve_device("auto", kOneOld), Device::cpu());
  EXPECT_EQ(choice_of_device("auto", kOneOld), "device: auto is the CPU: cuda:0 is left out, " + kOld);
  EXPECT_EQ(resolve_device("auto", kOldAndNew), Device::cuda(1));
  EXPECT_EQ(choice_of_device("auto", kOldAndNew), "device: auto is cuda:1: cuda:0 is left out, " + kOld);
  const std::string refusal = message_of<ConfigError>([] { resolve_device("cuda:0", kOldAndNew); });
  EXPECT_EQ(refusal, "device is cuda:0, but " + kOld + "; use cpu or auto");
  EXPECT_EQ(resolve_device("cuda:1", kOldAndNew), Device::cuda(1));
}

// The name comes from the config of another machine.
TEST(ResolveDevice, NamesAreReadWithoutTheirDevice) {
  EXPECT_EQ(named_device("cuda:7", kNone), Device::cuda(7));
  EXPECT_EQ(named_device("cuda:7"), Device::cuda(7));
  EXPECT_THROW(named_device("gpu", kFour), ConfigError);
}

}  // namespace
}  // namespace tessera
