#include "compress/timing/timed_at.h"

#include <algorithm>
#include <array>

#include "core/device/device_info.h"
#include "core/support/error.h"

namespace tessera {
namespace {

// Indexed by Phase.
constexpr std::array<std::string_view, 3> kPhases{"inference", "training", "decode"};

}  // namespace

std::string_view name_of(Phase phase) { return kPhases.at(static_cast<std::size_t>(phase)); }

std::vector<std::string_view> phase_names() { return {kPhases.begin(), kPhases.end()}; }

Phase phase_named(std::string_view name) {
  const auto found = std::ranges::find(kPhases, name);
  TESSERA_CHECK(found != kPhases.end(), ConfigError, "phase is '", name, "'; must be inference, training or decode");
  return static_cast<Phase>(found - kPhases.begin());
}

std::string machine_text(Device device, std::int64_t threads) {
  return device.is_cpu() ? str(threads, " threads") : device_info(device).name;
}

std::string precision_text(DType compute, bool tf32) {
  return tf32 && compute == DType::f32 ? std::string("tf32") : str(compute);
}

std::string where_timed(const TimedAt& at) {
  const std::string precision = precision_text(at.compute, at.tf32);
  const std::string length = at.phase == Phase::decode ? str(" at length ", at.length) : std::string();
  return str("batch ", at.batch, ", ", at.folded ? "folded " : "", name_of(at.phase), length, at.recompute ? ", recomputed" : "",
             ", ", at.machine, precision == "f32" ? std::string() : str(", ", precision));
}

}  // namespace tessera
