#include "core/precision.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

std::string refusal(std::string_view precision, const Device& device) {
  return message_of<ConfigError>([&] { compute_dtype(precision, device); });
}

TEST(Precision, EveryDeviceComputesInF32) {
  EXPECT_EQ(compute_dtype("f32", Device::cpu()), DType::f32);
  EXPECT_EQ(compute_dtype("f32", Device::cuda()), DType::f32);
}

TEST(Precision, RefusesWhatADeviceLacksAndSaysWhatItHas) {
  EXPECT_EQ(refusal("bf16", Device::cpu()), "bf16 is not supported on cpu yet; supported: f32");
  EXPECT_EQ(refusal("tf32", Device::cuda(1)), "tf32 is not supported on cuda:1 yet; supported: f32");
  for (const std::string_view name : precision_names()) {
    EXPECT_EQ(refusal(name, Device::cpu()).empty(), name == "f32") << name;
  }
  EXPECT_EQ(refusal("f8", Device::cpu()), "'f8' is no precision; choices: f32, tf32, bf16, f16");
}

}  // namespace
}  // namespace tessera
