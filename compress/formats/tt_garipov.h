// Tensor trains over kh kw and pairs of modes of a convolution's output and input channels (layers/tt_garipov_conv2d.h; Garipov
// et al., 2016). Ranks: r1, r2, ..., as many as modes of a side, two to four; r_k <= r_(k-1) n_k and r_k <= n_(k+1) r_(k+1).
// Factors: the cores. The layer runs the dense convolution: ranks lower its parameters, not its MACs.
#pragma once

#include "compress/formats/format.h"

namespace tessera {

const Format& tt_garipov_format();

}  // namespace tessera
