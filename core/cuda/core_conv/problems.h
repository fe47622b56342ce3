// One pass of one convolution in the form that the kernels walk, and how it follows from the geometry. All numbers fit 32 bits:
// plan_core_conv() sees to that.
#pragma once

#include <string>

#include "core/conv2d_geometry.h"
#include "core/cuda/core_conv/tiles.h"
#include "core/dtype.h"

namespace tessera::cuda::core_conv {

// How pixels of the result that share a remainder by `step` read the input along one axis: pixel q of them stands at
// step * q + offset, and its tap j reads stride * q + origin + j, with the weights of row or column weight_first + j *
// weight_step.
struct Axis {
  int count = 0;  // of pixels
  int offset = 0;
  int origin = 0;
  int taps = 0;
  int weight_first = 0;
  int weight_step = 1;
};

// What a pass reads, [images, in_rows, in_columns, channels], beside [images, out_rows, out_columns, outs], which it writes or,
// for the gradient of the weights, reads too.
struct ConvImages {
  int images, in_rows, in_columns, channels;
  int out_rows, out_columns, outs;
};

// result[pixel, o] = sum over taps and channels c of input[pixel's tap, c] * weight[o, tap, c]: the forward pass, and the
// gradient of the input, whose input is the result's gradient and whose weights are flipped and transposed by the strides below.
// With a stride of two the latter is four such sums, one for each parity of row and column (`step` = 2).
struct GatherProblem : ConvImages {
  int stride, step;
  Axis rows[2], columns[2];  // [offset]
  int weight_out, weight_channel, weight_tap, kernel_columns;  // strides of the weights, in elements
  bool quads_of_input, quads_of_weight;  // four channels at a time are one aligned copy
  // From the tile:
  int tiles_y, tiles_x, out_tiles, stages, splits;

  TESSERA_HD int phases() const { return step * step; }
  TESSERA_HD int numel() const { return images * out_rows * out_columns * outs; }
};

// weight_gradient[o, ky, kx, c] = sum over pixels of gradient[pixel, o] * input[pixel's tap (ky, kx), c].
struct WeightProblem : ConvImages {
  int stride, kernel_rows, kernel_columns;
  int origin_y, origin_x;  // of the first pixel's first tap
  bool quads_of_input, quads_of_gradient;
  // From the tile: a stage is a rectangle of pixels, counted over all images.
  int tiles_y, tiles_x, stages, out_tiles, in_tiles, splits;

  TESSERA_HD int numel() const { return outs * kernel_rows * kernel_columns * channels; }
};

// Why the kernels cannot run the geometry, as a sentence; empty where they can.
std::string refusal(const Conv2dGeometry& geometry, DType dtype);

// Without what follows from a tile. `pass` is forward or backward_input.
GatherProblem gather_problem(Conv2dPass pass, const Conv2dGeometry& geometry);
WeightProblem weight_problem(const Conv2dGeometry& geometry);

// Every pixel of the result has 3x3 taps.
bool is_full(const GatherProblem& problem);

void apply(GatherProblem& problem, const GatherTile& tile, int splits);
void apply(WeightProblem& problem, const WeightTile& tile, int splits);

// The first of `count` stages that part `index` of `parts` runs.
TESSERA_HD inline int first_stage(int count, int parts, int index) {
  return static_cast<int>(static_cast<long long>(count) * index / parts);
}

// What one thread copies to shared memory: four floats or one, zeros where the source lies outside.
struct Copy {
  int source;
  int destination;
  bool inside;
};

struct alignas(16) Quad {
  float x, y, z, w;
};

TESSERA_HD inline Quad quad_at(const float* aligned) { return *reinterpret_cast<const Quad*>(aligned); }

// Partial results [splits, numel] of a result whose last axis is of `outs` elements.
struct SplitSums {
  const float* workspace;
  int numel, splits;
  const float* bias;  // [outs] or null
  int outs;
};

// Element `at` of the result, its splits in order.
TESSERA_HD inline float sum_of_splits(const SplitSums& sums, int at) {
  float sum = 0;
  for (int split = 0; split < sums.splits; ++split) sum += sums.workspace[static_cast<long long>(split) * sums.numel + at];
  return sums.bias == nullptr ? sum : sum + sums.bias[at % sums.outs];
}

}  // namespace tessera::cuda::core_conv
