#include "core/device/device.h"

#include <charconv>
#include <ostream>

#include "core/support/error.h"

namespace tessera {

Device Device::parse(std::string_view text) {
  if (text == "cpu") return cpu();
  if (text == "cuda") return cuda(0);
  constexpr std::string_view prefix = "cuda:";
  if (text.starts_with(prefix)) {
    const std::string_view digits = text.substr(prefix.size());
    int index = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error == std::errc{} && end == digits.data() + digits.size() && index >= 0) return cuda(index);
  }
  throw ConfigError(str("unknown device '", text, "'; use cpu, cuda or cuda:N"));
}

std::string Device::name() const { return is_cpu() ? "cpu" : str("cuda:", index_); }

std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.name(); }

void require_cpu(const Device& device, const char* operation) {
  TESSERA_CHECK(device.is_cpu(), DeviceError, operation, ": device is ", device, "; this build has no CUDA backend");
}

}  // namespace tessera
