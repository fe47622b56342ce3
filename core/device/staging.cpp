#include "core/device/staging.h"

#include "core/device/dispatch.h"
#include "core/support/error.h"

namespace tessera {
namespace cpu {

std::unique_ptr<StagingRing> staging_ring(Device device, std::span<const StagedTensor>, int) {
  throw DeviceError(str("staging: device is ", device, "; needs a GPU"));
}

}  // namespace cpu

std::unique_ptr<StagingRing> make_staging_ring(Device device, std::span<const StagedTensor> layout, int slots) {
  TESSERA_CHECK(slots >= 2, InternalError, "staging: ", slots, " slots; one is read while another is filled");
  return TESSERA_BACKEND(device, staging_ring, device, layout, slots);
}

}  // namespace tessera
