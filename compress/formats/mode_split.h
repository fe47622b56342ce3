// What the formats that hold the channels of each side as several modes have in common (layers/tt_modes.h).
#pragma once

#include <cstdint>
#include <string>

#include "compress/formats/format.h"
#include "layers/tt_modes.h"

namespace tessera {

struct ModeSplit {
  Modes out, in;
};

// The config's sizes where it gives them for the side. Otherwise balanced modes of the layer's channels, as many as the other
// side has or as `count` says, two without a count.
ModeSplit split_modes(const ModesConfig& config, std::int64_t out, std::int64_t in);

// Why the modes do not multiply to `size` of `parts` ("input channels"), or why one of them is 1; "" where neither is so.
std::string why_not_into(const Modes& modes, std::int64_t size, std::string_view parts);

// Why the modes do not fit a layer with these channels: "has 3 input channels, which do not split into 2 modes above 1". ""
// where they fit.
std::string why_no_split(const ModeSplit& modes, std::int64_t out, std::int64_t in);

}  // namespace tessera
