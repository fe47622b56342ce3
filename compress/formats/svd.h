// The truncated singular value decomposition of a linear layer's weight, or of a 1x1 convolution's (layers/svd_factors.h).
// Rank: rank <= min(out, in). Factors: in_factor [rank, in], out_factor [out, rank].
#pragma once

#include "compress/formats/format.h"

namespace tessera {

const Format& svd_format();

}  // namespace tessera
