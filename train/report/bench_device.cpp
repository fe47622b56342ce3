#include "train/report/bench_device.h"

#include "core/support/error.h"
#include "train/run/environment.h"

namespace tessera {

std::string gpu_text(const DeviceInfo& gpu) {
  return str(gpu.name, " (", gpu.capability, "), driver for CUDA ", gpu.driver, ", ", gpu.libraries);
}

std::string setup_text(Device device) {
  return device.is_cpu() ? setup_text() : str(gpu_text(device_info(device)), "; host ", setup_text());
}

}  // namespace tessera
