// Sums over ranks by NCCL. Its library, tessera_nccl, is linked by programs alone.
#pragma once

#include <functional>
#include <string>

#include "core/comm/gpu_sums.h"

namespace tessera {

// Gives sums where no two ranks have the same GPU, which NCCL does not serve; otherwise null, with a warning on rank 0. Ranks
// exchange pieces, add them in the order of ranks and gather the results: NCCL's own sums are taken in an order that depends on
// the machines. Throws DeviceError where NCCL fails or takes longer than a minute to connect. For what fails later, such as a
// connection that breaks or a sum that takes the GPU five minutes, `failed` is called first, maybe by another thread and again
// and again; it has to end all ranks.
MakeGpuSums nccl_sums(std::function<void(const std::string& why)> failed);

}  // namespace tessera
