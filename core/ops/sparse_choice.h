// What the choice of a way for a sparse product (core/ops/sparse_product.h) depends on, on either device.
#pragma once

#include <cstdint>
#include <vector>

#include "core/conv2d_geometry.h"
#include "core/ops/sparse_weight.h"

namespace tessera {

struct SparseCall {
  Conv2dPass pass;
  Conv2dGeometry geometry;
  const SparseWeight& weight;
  DType dtype;  // of x
  bool relu = false;

  // For a cache of choices: all of it, whether weights are constant, and the decisions in force.
  std::vector<std::int64_t> cache_key() const;
};

// x of the forward, or its gradient; likewise y. Rows are images of one pixel.
Conv2dGeometry sparse_geometry(const Tensor& x, const SparseWeight& weight, const Tensor& y, const Conv2dOptions& options);

}  // namespace tessera
