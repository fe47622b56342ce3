// From the geometry of a convolution to what the kernels walk.
#pragma once

#include <string>

#include "core/cuda/core_conv/problem.h"
#include "core/dtype.h"
#include "core/conv2d_geometry.h"

namespace tessera::cuda::core_conv {

// Why the kernels cannot run the geometry, as a sentence; empty where they can.
std::string refusal(const Conv2dGeometry& geometry, DType dtype);

// Without what follows from a tile. `pass` is forward or backward_input.
GatherProblem gather_problem(Conv2dPass pass, const Conv2dGeometry& geometry);
WeightProblem weight_problem(const Conv2dGeometry& geometry);

// Every pixel of the result has 3x3 taps.
bool is_full(const GatherProblem& problem);

void apply(GatherProblem& problem, const GatherTile& tile, int splits);
void apply(WeightProblem& problem, const WeightTile& tile, int splits);

}  // namespace tessera::cuda::core_conv
