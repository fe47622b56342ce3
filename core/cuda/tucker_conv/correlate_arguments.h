// What the correlations of correlate.h are told. Plain numbers and addresses.
#pragma once

#include "core/cuda/tucker_conv/block.h"
#include "core/cuda/tucker_conv/correlate_shape.h"

namespace tessera::cuda {

template <class T>
struct Correlation {
  CorrelationShape shape;
  const T* left = nullptr;
  const T* right = nullptr;
  bool vector_left = false, vector_right = false;
  bool sums_left = false;  // and the bias gradient, the sum of `left` over pixels
  std::int64_t begin = 0;  // of its weight gradient in a partial result
};

template <class T>
struct CorrelateArguments {
  Correlation<T> jobs[3];
  int count = 0;
  std::int64_t bias_begin = 0;
  std::int64_t partial_size = 0;  // elements of one partial result
  float* partials = nullptr;
};

// Job and group of block row `index` of the grid.
template <class T>
TESSERA_INLINE int find_job(const CorrelateArguments<T>& args, int& index) {
  for (int job = 0; job < args.count - 1; ++job) {
    const int groups = args.jobs[job].shape.groups();
    if (index < groups) return job;
    index -= groups;
  }
  return args.count - 1;
}

}  // namespace tessera::cuda
