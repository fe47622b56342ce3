// A convolution's weight separated over height and width (Jaderberg et al., BMVC 2014; layers/spatial_svd_conv2d.h): the singular
// value decomposition of the matrix [out kw, kh in]. Rank: rank <= min(out kw, kh in). Factors: in_factor [rank, kh in],
// out_factor [out kw, rank].
#pragma once

#include "compress/formats/format.h"

namespace tessera {

const Format& spatial_svd_format();

}  // namespace tessera
