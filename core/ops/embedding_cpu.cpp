#include <algorithm>

#include "core/cpu/parallel.h"
#include "core/ops/embedding.h"
#include "core/support/error.h"

namespace tessera::cpu {

void embedding_forward(const Tensor& ids, const Tensor& weight, const Tensor& y) {
  const std::int64_t rows = weight.dim(0);
  const std::int64_t width = weight.dim(1);
  const std::int64_t* id = ids.data<std::int64_t>();
  for (std::int64_t i = 0; i < ids.numel(); ++i) {
    TESSERA_CHECK(id[i] >= 0 && id[i] < rows, ShapeError, "embedding: id out of range: ids[", i, "] is ", id[i], "; needs 0 to ",
                  rows - 1, ", weight is ", weight.shape());
  }
  dispatch_real(weight.dtype(), "embedding", [&]<class T>() {
    parallel_for(ids.numel(), kGrain / std::max<std::int64_t>(width, 1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) std::copy_n(weight.data<T>() + id[i] * width, width, y.data<T>() + i * width);
    });
  });
}

// Each thread owns a range of columns, so that equal ids need no locks and are added in order.
void embedding_add(const Tensor& ids, const Tensor& grad_y, const Tensor& sum) {
  const std::int64_t width = sum.dim(1);
  const std::int64_t* id = ids.data<std::int64_t>();
  dispatch_real(grad_y.dtype(), "embedding_backward", [&]<class T>() {
    parallel_for(width, kGrain / std::max<std::int64_t>(ids.numel(), 1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 0; i < ids.numel(); ++i) {
        T* to = sum.data<T>() + id[i] * width;
        const T* from = grad_y.data<T>() + i * width;
#pragma omp simd
        for (std::int64_t k = begin; k < end; ++k) to[k] += from[k];
      }
    });
  });
}

void embedding_backward(const Tensor& ids, const Tensor& grad_y, const Tensor& grad_weight) {
  grad_weight.fill(0.0);
  embedding_add(ids, grad_y, grad_weight);
}

}  // namespace tessera::cpu
