// From a tile's place in its list, known at run time, to the template argument.
#pragma once

#include <cstddef>
#include <utility>

#include "core/cuda/core_conv/tiles.h"

namespace tessera::cuda::core_conv {

// Calls f.operator()<index>() for an index below kCount.
template <std::size_t kCount, class F>
void visit_index(int index, F&& f) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    ((kIndex == index ? f.template operator()<kIndex>() : void()), ...);
  }
  (std::make_integer_sequence<int, static_cast<int>(kCount)>());
}

// Calls f.operator()<kList[index]>().
template <const auto& kList, class F>
void visit_tile(int index, F&& f) {
  visit_index<kList.size()>(index, [&]<int kIndex>() { f.template operator()<kList[static_cast<std::size_t>(kIndex)]>(); });
}

}  // namespace tessera::cuda::core_conv
