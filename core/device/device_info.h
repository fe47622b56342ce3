// What there is to know of a device, for messages, env.json and reports.
#pragma once

#include <cstddef>
#include <string>

#include "core/device/device.h"

namespace tessera {

// GPUs that this process sees; 0 in a build without CUDA, without a driver and where no GPU is visible.
int cuda_device_count() noexcept;

// Why cuda_device_count() is 0: "this build has no CUDA backend", "no CUDA driver is installed", ...; "" where it is not.
std::string why_no_cuda();

// Why this build cannot compute on a GPU that cuda_device_count() counts: "it has compute capability 8.0, this build has kernels
// for 9.0 and newer". "" where it can.
std::string why_unusable(Device device);

struct DeviceInfo {
  std::string name;  // "NVIDIA H200"
  std::string capability;  // "9.0"
  std::string driver;  // the CUDA version that the driver supports, "13.0"
  std::string libraries;  // "CUDA 13.0, cuDNN 9.19.0, cuBLASLt 13.1.0"
  std::size_t memory = 0;  // bytes
  int processors = 0;  // streaming multiprocessors
};

// Throws DeviceError unless `device` is a GPU that this process can use.
DeviceInfo device_info(Device device);

namespace cpu {
int count_devices() noexcept;
std::string why_no_device();
std::string why_not(Device device);
DeviceInfo info_of(Device device);
std::string chip_name(Device device);
}  // namespace cpu
namespace cuda {
int count_devices() noexcept;
std::string why_no_device();
std::string why_not(Device device);
DeviceInfo info_of(Device device);
// What decisions call the chip, whichever index it has: "sm90x132x3352" of capability 9.0 with 132 processors and 3352 GB/s.
// On the CPU "cpu".
std::string chip_name(Device device);
}  // namespace cuda

}  // namespace tessera
