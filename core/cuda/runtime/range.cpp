#include "core/cuda/runtime/range.h"

#include <nvtx3/nvToolsExt.h>

namespace tessera::cuda {

Range::Range(const char* name) { nvtxRangePushA(name); }
Range::~Range() { nvtxRangePop(); }

}  // namespace tessera::cuda
