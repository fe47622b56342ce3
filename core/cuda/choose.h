// The choice among what a library offers for one shape on a GPU.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "core/device.h"

namespace tessera::cuda {

// Index of the candidate that decide() takes for `key`, by the device's clock; 0 where nothing may be timed, as while a graph is
// recorded: the first one then has to do. `run(i)` queues candidate i once. A candidate that finds no memory is not chosen,
// unless it is the first.
std::size_t choose(Device device, const std::string& key, std::span<const std::string> names,
                   const std::function<void(std::size_t)>& run);

}  // namespace tessera::cuda
