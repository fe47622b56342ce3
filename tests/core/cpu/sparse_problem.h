// Sparse weights of the tests of the CPU's sparse kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "core/conv2d_geometry.h"
#include "core/cpu/sparse/plan.h"
#include "core/rng.h"
#include "core/tensor.h"

namespace tessera::cpu::sparse {

struct Case {
  std::int64_t n, h, w, in, out;
  std::int64_t kernel;
  double density;
  std::int64_t sharing;  // rows that keep the same columns
  Conv2dOptions options = {};
};

inline Tensor random(const Shape& shape, std::uint64_t index) {
  const Tensor x = Tensor::empty(shape);
  fill_uniform(x, RngStream(3, "sparse_test", "values"), -1, 1, index);
  return x;
}

inline Tensor random_mask(const Case& c) {
  const Tensor mask = Tensor::zeros({c.out, c.kernel, c.kernel, c.in}, DType::u8);
  const std::int64_t columns = mask.numel() / c.out;
  const Tensor draws = random({(c.out + c.sharing - 1) / c.sharing, columns}, 9);
  for (std::int64_t i = 0; i < mask.numel(); ++i) {
    const float draw = draws.data<float>()[i / columns / c.sharing * columns + i % columns];
    mask.data<std::uint8_t>()[i] = (draw + 1) / 2 < c.density ? 1 : 0;
  }
  return mask;
}

struct Problem {
  explicit Problem(const Case& c)
      : g{c.n,
          c.h,
          c.w,
          c.in,
          c.out,
          c.kernel,
          c.kernel,
          size(c.h, c.options, &Extent::h, c.kernel),
          size(c.w, c.options, &Extent::w, c.kernel),
          c.options},
        mask(random_mask(c)),
        index(sparse_index(mask)),
        values(random({index.count()}, 1)),
        weight(Tensor::zeros(mask.shape(), DType::f64)) {
    std::int64_t next = 0;
    for (std::int64_t i = 0; i < mask.numel(); ++i) {
      if (mask.data<std::uint8_t>()[i] != 0) weight.data<double>()[i] = values.data<float>()[next++];
    }
  }
  static std::int64_t size(std::int64_t side, const Conv2dOptions& o, std::int64_t Extent::*axis, std::int64_t kernel) {
    return (side + 2 * o.padding.*axis - o.dilation.*axis * (kernel - 1) - 1) / o.stride.*axis + 1;
  }
  Shape x_shape() const { return {g.n, g.h, g.w, g.in}; }
  Shape y_shape() const { return {g.n, g.oh, g.ow, g.out}; }
  std::vector<float> packed(const Plan& plan) const {
    std::vector<float> weights;
    for (const std::int32_t element : plan.from) weights.push_back(values.data<float>()[element]);
    return weights;
  }

  Conv2dGeometry g;
  Tensor mask;
  SparseIndex index;
  Tensor values, weight;
};

}  // namespace tessera::cpu::sparse
