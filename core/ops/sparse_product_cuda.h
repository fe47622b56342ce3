// How sparse products run on a GPU. Included by sparse_product_cuda.cpp and tests of the ways only.
#pragma once

#include <cstddef>
#include <string>

namespace tessera::cuda {

// How often this thread ran the products by `way`, over all passes: shows that a forced choice was obeyed. Ways: `dense`,
// `sparse` and `pieces`.
std::size_t sparse_runs(const std::string& way);

}  // namespace tessera::cuda
