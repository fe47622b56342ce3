#include "core/device/precision.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/device/precision_backend.h"
#include "core/support/error.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 4> kNames{"f32", "tf32", "bf16", "f16"};
constexpr std::array<std::string_view, 2> kOnCpu{"f32", "bf16"};

std::span<const std::string_view> supported_on(const Device& device) {
  if (device.is_cuda()) return kNames;
  return kOnCpu;
}

constinit bool tf32_allowed = false;

std::string list(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text += str(text.empty() ? "" : ", ", name);
  return text;
}

}  // namespace

std::span<const std::string_view> precision_names() { return kNames; }

DType parameter_dtype(DType activations) {
  return is_half(activations) ? DType::f32 : activations;
}

DType compute_dtype(std::string_view precision, const Device& device) {
  TESSERA_CHECK(std::ranges::find(kNames, precision) != kNames.end(), ConfigError, "'", precision,
                "' is no precision; choices: ", list(kNames));
  const std::span<const std::string_view> supported = supported_on(device);
  TESSERA_CHECK(std::ranges::find(supported, precision) != supported.end(), ConfigError, precision, " is not supported on ",
                device, " yet; supported: ", list(supported));
  if (precision == "f16") return DType::f16;
  if (precision != "bf16") return DType::f32;
  if (device.is_cuda()) return DType::bf16;
  TESSERA_CHECK(cpu::onednn_has_bf16(), ConfigError, "bf16 needs a processor with avx512_bf16 or AMX; oneDNN may use ",
                cpu::onednn_isa(), " here (ONEDNN_MAX_CPU_ISA can limit it); use f32");
  return DType::bf16;
}

Tf32Products::Tf32Products(bool allowed) noexcept : outer_(std::exchange(tf32_allowed, allowed)) {}
Tf32Products::~Tf32Products() { tf32_allowed = outer_; }
bool tf32_products() noexcept { return tf32_allowed; }

}  // namespace tessera
