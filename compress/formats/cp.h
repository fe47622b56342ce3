// The CP decomposition of a convolution's weight by proximal alternating least squares (Lebedev et al., ICLR 2015;
// layers/cp_conv2d.h, core/linalg/cp.h). Rank: rank <= out kh kw in / the largest of these. Factors: in_factor [rank, in],
// vertical [rank, kh], horizontal [rank, kw], out_factor [out, rank]; of a kernel of one row or column the vertical or horizontal
// one is left out. Its spectrum is that of the matrix [out kh, kw in]: no CP of rank r comes nearer than the values beyond the
// first r.
#pragma once

#include "compress/formats/format.h"

namespace tessera {

const Format& cp_format();

}  // namespace tessera
