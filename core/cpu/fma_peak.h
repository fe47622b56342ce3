// What the processor's f32 multiply-add units can do: the yardstick for rivals and for our own kernels.
#pragma once

#include "core/cpu/isa.h"

namespace tessera::cpu {

// GFLOP/s of independent multiply-add chains held in registers on `threads` OpenMP threads, with the widest vectors that the
// processor has: the best of several short runs.
double fma_peak_gflops(int threads);
// The same with no wider vectors than one instruction set has.
double isa_peak_gflops(Isa isa, int threads);

}  // namespace tessera::cpu
