#include <limits>

#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/elements.cuh"
#include "core/cuda/kernel/launch.cuh"
#include "core/cuda/kernel/ordered_sum.h"
#include "core/ops/embedding.h"

namespace tessera::cuda {
namespace {

// Copies rows as packs of kWidth elements. A wrong id gives NaN.
template <class T, int kWidth>
__global__ void embedding_forward_kernel(const std::int64_t* ids, const T* weight, std::int64_t rows, std::int64_t packs,
                                         std::int64_t count, T* y) {
  for (std::int64_t i = first_item(); i < count; i += item_stride()) {
    const std::int64_t use = i / packs;
    const std::int64_t id = ids[use];
    Pack<T, kWidth> pack;
    if (id >= 0 && id < rows) {
      pack = load_pack<kWidth>(weight + (id * packs + (i - use * packs)) * kWidth);
    } else {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) pack.elements[j] = element_of<T>(std::numeric_limits<Compute<T>>::quiet_NaN());
    }
    store_pack(y + i * kWidth, pack);
  }
}

template <class T, int kWidth>
void look_up(const Tensor& ids, const Tensor& weight, const Tensor& y) {
  launch("embedding", y.device(), grid_for(y.numel() / kWidth, y.device()), embedding_forward_kernel<T, kWidth>,
         ids.data<std::int64_t>(), weight.data<T>(), weight.dim(0), weight.dim(1) / kWidth, y.numel() / kWidth, y.data<T>());
}

}  // namespace

void embedding_forward(const Tensor& ids, const Tensor& weight, const Tensor& y) {
  dispatch_numbers(weight.dtype(), "embedding", [&]<class T>() {
    constexpr int kWidth = static_cast<int>(16 / sizeof(T));
    const bool packs = weight.dim(1) % kWidth == 0 && is_aligned(weight.raw(), 16) && is_aligned(y.raw(), 16);
    packs ? look_up<T, kWidth>(ids, weight, y) : look_up<T, 1>(ids, weight, y);
  });
}

void embedding_backward(const Tensor& ids, const Tensor& grad_y, const Tensor& grad_weight) {
  ordered_row_sums("embedding_backward", ids, grad_y, grad_weight);
}

}  // namespace tessera::cuda
