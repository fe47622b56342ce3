// Which GPUs this build has kernels for.
#pragma once

namespace tessera::cuda {

// The least compute capability, 90 for 9.0. Newer GPUs compile the PTX that a build holds of its last architecture.
int least_capability() noexcept;

}  // namespace tessera::cuda
