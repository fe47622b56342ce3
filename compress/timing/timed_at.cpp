#include "compress/timing/timed_at.h"

#include "core/device/device_info.h"
#include "core/support/error.h"

namespace tessera {

std::string_view name_of(Phase phase) { return phase == Phase::training ? "training" : "inference"; }

std::string machine_text(Device device, std::int64_t threads) {
  return device.is_cpu() ? str(threads, " threads") : device_info(device).name;
}

std::string precision_text(DType compute, bool tf32) {
  return tf32 && compute == DType::f32 ? std::string("tf32") : str(compute);
}

std::string where_timed(const TimedAt& at) {
  const std::string precision = precision_text(at.compute, at.tf32);
  return str("batch ", at.batch, ", ", at.folded ? "folded " : "", name_of(at.phase), at.recompute ? ", recomputed" : "", ", ",
             at.machine, precision == "f32" ? std::string() : str(", ", precision));
}

}  // namespace tessera
