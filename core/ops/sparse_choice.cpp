#include "core/ops/sparse_choice.h"

#include "core/device/constant_weights.h"
#include "core/device/decisions.h"

namespace tessera {

std::vector<std::int64_t> SparseCall::cache_key() const {
  const Conv2dGeometry& g = geometry;
  const auto& [stride, padding, dilation, groups] = g.options;
  return {static_cast<std::int64_t>(weight.id()),
          static_cast<std::int64_t>(pass),
          g.n,
          g.h,
          g.w,
          stride.h,
          stride.w,
          padding.h,
          padding.w,
          dilation.h,
          dilation.w,
          static_cast<std::int64_t>(dtype),
          relu,
          ConstantWeights::current() != nullptr,
          static_cast<std::int64_t>(decision_epoch())};
}

Conv2dGeometry sparse_geometry(const Tensor& x, const SparseWeight& weight, const Tensor& y, const Conv2dOptions& options) {
  const Shape& shape = weight.shape();
  if (shape.rank() == 4) {
    return {x.dim(0), x.dim(1), x.dim(2), x.dim(3), shape[0], shape[1], shape[2], y.dim(1), y.dim(2), options};
  }
  return {x.dim(0), 1, 1, x.dim(1), shape[0], 1, 1, 1, 1, {}};
}

}  // namespace tessera
