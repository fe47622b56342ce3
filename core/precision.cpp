#include "core/precision.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/error.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 4> kNames{"f32", "tf32", "bf16", "f16"};
constexpr std::array<std::string_view, 1> kSupported{"f32"};  // on every device that there is

std::string list(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text += str(text.empty() ? "" : ", ", name);
  return text;
}

}  // namespace

std::span<const std::string_view> precision_names() { return kNames; }

DType compute_dtype(std::string_view precision, const Device& device) {
  TESSERA_CHECK(std::ranges::find(kNames, precision) != kNames.end(), ConfigError, "'", precision,
                "' is no precision; choices: ", list(kNames));
  TESSERA_CHECK(std::ranges::find(kSupported, precision) != kSupported.end(), ConfigError, precision, " is not supported on ",
                device, " yet; supported: ", list(kSupported));
  return DType::f32;
}

}  // namespace tessera
