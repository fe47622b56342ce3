// What the sparse layers' kernels are for one instruction set.
// Included only by the files that build it for one each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include "core/cpu/sparse/dot_kernels.h"
#include "core/cpu/sparse/pack_kernels.h"
#include "core/cpu/sparse/product_kernels.h"
#include "core/cpu/sparse/tile_kernels.h"

namespace tessera::cpu::sparse {
namespace {

template <int W>
constexpr Kernels kernels_of() {
  return {product<W>, strip_product<W>, dots<W>, tile<W>, pack<W>, copy<W>, unpack<W>};
}

}  // namespace
}  // namespace tessera::cpu::sparse
