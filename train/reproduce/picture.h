// The metric against measured time, as an SVG that needs nothing beside itself.
#pragma once

#include <string>

#include "train/reproduce/table_view.h"

namespace tessera {

// One point per arm: time of a batch of the file's last batch size, the median with a bar from p10 to p90, or training time
// before the networks are timed; mean of the metric with its standard deviation as a bar. A picture without points where no arm
// has a result.
std::string to_svg(const TableView& view);

}  // namespace tessera
