// Products with a sparse weight by the dense kernels of either device; operands as in core/ops/sparse_product.h.
#pragma once

#include "core/ops/sparse_product.h"

namespace tessera {

void sparse_forward_by_dense(const Tensor& x, const Tensor& values, const SparseWeight& weight, const Tensor& bias,
                             const Tensor& y, const Conv2dOptions& options, bool relu);
void sparse_backward_input_by_dense(const Tensor& grad_y, const Tensor& values, const SparseWeight& weight, const Tensor& grad_x,
                                    const Conv2dOptions& options);
void sparse_backward_values_by_dense(const Tensor& x, const Tensor& grad_y, const SparseWeight& weight, const Tensor& grad_values,
                                     const Tensor& grad_bias, const Conv2dOptions& options);

}  // namespace tessera
