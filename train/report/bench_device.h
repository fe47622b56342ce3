// How measured times name the machine that they were measured on.
#pragma once

#include <string>

#include "core/device/device.h"
#include "core/device/device_info.h"

namespace tessera {

// "NVIDIA H200 (9.0), driver for CUDA 13.0, CUDA 13.0, cuDNN 9.19.0, cuBLASLt 13.1.0"
std::string gpu_text(const DeviceInfo& gpu);

// setup_text() on one line, with the GPU in front where the device is one.
std::string setup_text(Device device);

}  // namespace tessera
