// The compressed layers of a run as rows of layers.csv.
#pragma once

#include <span>
#include <string>

#include "compress/pass_runner.h"

namespace tessera {

// Header and one line per layer, RFC 4180 quoting, "\n" line ends, numbers in the shortest form that reads back equal. The time a
// rewrite took is left out, so that equal runs write equal files.
std::string layers_csv(std::span<const LayerReport> layers);

// For people: one sentence on the whole, then a line per layer that stayed dense with its reason.
std::string summary(const PassReport& report);

}  // namespace tessera
