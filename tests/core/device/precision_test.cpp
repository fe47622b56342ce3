#include "core/device/precision.h"

#include <gtest/gtest.h>

#include "core/cpu/onednn_version.h"
#include "core/support/error.h"
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

TEST(Precision, GpusTakeEveryOne) {
  EXPECT_EQ(compute_dtype("tf32", Device::cuda()), DType::f32);  // tf32 is how products round, not what tensors hold
  EXPECT_EQ(compute_dtype("bf16", Device::cuda()), DType::bf16);
  EXPECT_EQ(compute_dtype("f16", Device::cuda(1)), DType::f16);
  EXPECT_EQ(parameter_dtype(DType::f16), DType::f32);
}

TEST(Precision, Tf32IsTheNewestScopesToAllow) {
  EXPECT_FALSE(tf32_products());
  const Tf32Products outer(true);
  EXPECT_TRUE(tf32_products());
  {
    const Tf32Products inner(false);
    EXPECT_FALSE(tf32_products());
  }
  EXPECT_TRUE(tf32_products());
}

TEST(Precision, RefusesWhatADeviceLacksAndSaysWhatItHas) {
  EXPECT_EQ(refusal("f16", Device::cpu()), "f16 is not supported on cpu yet; supported: f32, bf16");
  EXPECT_EQ(refusal("tf32", Device::cpu()), "tf32 is not supported on cpu yet; supported: f32, bf16");
  EXPECT_EQ(refusal("f8", Device::cpu()), "'f8' is no precision; choices: f32, tf32, bf16, f16");
}

TEST(Precision, Bf16AsksForInstructions) {
  if (cpu::onednn_has_bf16()) {
    EXPECT_EQ(compute_dtype("bf16", Device::cpu()), DType::bf16);
  } else {
    EXPECT_EQ(refusal("bf16", Device::cpu()), str("bf16 needs a processor with avx512_bf16 or AMX; oneDNN may use ",
                                                  cpu::onednn_isa(), " here (ONEDNN_MAX_CPU_ISA can limit it); use f32"));
  }
}

TEST(Precision, ParametersBesideBf16AreF32) {
  EXPECT_EQ(parameter_dtype(DType::bf16), DType::f32);
  EXPECT_EQ(parameter_dtype(DType::f32), DType::f32);
  EXPECT_EQ(parameter_dtype(DType::f64), DType::f64);
}

}  // namespace
}  // namespace tessera
