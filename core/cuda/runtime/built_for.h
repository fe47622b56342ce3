// Which GPUs this build has kernels for.
#pragma once

namespace tessera::cuda {

// The least compute capability, 90 for 9.0. GPUs newer than all of a build's architectures need the PTX that it holds of the
// last.
int least_capability() noexcept;

}  // namespace tessera::cuda
