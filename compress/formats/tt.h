// Tensor trains (Oseledets, SISC 2011; core/linalg/tt.h): of a convolution's weight over modes of its output channels, kh kw, and
// modes of its input channels (layers/tt_conv2d.h); of a linear layer's and an embedding's over pairs of modes
// (layers/tt_linear.h, layers/tt_embedding.h). Ranks: r1, r2, ..., one between each two modes; r_k <= r_(k-1) n_k and r_k <=
// n_(k+1) r_(k+1). Factors: the cores.
#pragma once

#include "compress/formats/format.h"

namespace tessera {

const Format& tt_format();

}  // namespace tessera
