#include "core/device/device_info.h"

#include "core/device/dispatch.h"
#include "core/support/error.h"

namespace tessera {
namespace cpu {

int count_devices() noexcept { return 0; }
std::string why_no_device() { return "this build has no CUDA backend"; }
std::string why_not(Device) { return why_no_device(); }
DeviceInfo info_of(Device device) { throw DeviceError(str("device_info: ", device, ": ", why_no_device())); }
std::string chip_name(Device) { return "cpu"; }

}  // namespace cpu

#if TESSERA_HAS_CUDA
namespace backend = cuda;
#else
namespace backend = cpu;
#endif

int cuda_device_count() noexcept { return backend::count_devices(); }
std::string why_no_cuda() { return backend::why_no_device(); }
std::string why_unusable(Device device) { return backend::why_not(device); }
DeviceInfo device_info(Device device) { return backend::info_of(device); }

}  // namespace tessera
