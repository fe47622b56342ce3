// The compressed layers of a run as rows of layers.csv.
#pragma once

#include <span>
#include <string>

#include "compress/pass.h"

namespace tessera {

// Header and one line per layer, RFC 4180 quoting, "\n" line ends, numbers in the shortest form that reads back equal. The time a
// rewrite took is left out, so that equal runs write equal files.
std::string layers_csv(std::span<const LayerReport> layers);

}  // namespace tessera
