// What formats share that hold the channels of each side as several modes (layers/tt_modes.h).
#pragma once

#include <cstdint>
#include <string>

#include "compress/formats/format.h"
#include "layers/tt_modes.h"

namespace tessera {

struct ModeSplit {
  Modes out, in;
};

// The config's sizes where it gives them; else as many, balanced, of the layer's channels: two without a count.
ModeSplit split_modes(const ModesConfig& config, std::int64_t out, std::int64_t in);

// Why the modes do not multiply to so many `parts`, "input channels", or are none above 1; "" where they do and are.
std::string why_not_into(const Modes& modes, std::int64_t size, std::string_view parts);

// Why the modes are none of a layer with these channels: "has 3 input channels, which do not split into 2 modes above 1". ""
// where they are.
std::string why_no_split(const ModeSplit& modes, std::int64_t out, std::int64_t in);

}  // namespace tessera
