// The kernels of one instruction set, as kernels_of<W>().
// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include "core/cpu/depthwise/rows.h"
#include "core/cpu/depthwise/tiles.h"

namespace tessera::cpu::depthwise {
namespace {

template <int W>
constexpr Kernels kernels_of() {
  return {W, kMostRows<W>, correlate<W>, add_filter_grad<W>, correlate3x3<W>, add_filter_grad3x3<W>};
}

}  // namespace
}  // namespace tessera::cpu::depthwise
