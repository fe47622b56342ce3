// Tucker-2 on the channel modes of a convolution's weight (Kim et al., ICLR 2016; layers/tucker2_conv2d.h).
// Ranks: out, in; r_out <= taps r_in and r_in <= taps r_out. Factors: in_factor [r_in, in], core [r_out, kh, kw, r_in],
// out_factor [out, r_out]; a mode of full rank has none.
#pragma once

#include "compress/formats/format.h"

namespace tessera {

const Format& tucker2_format();

}  // namespace tessera
