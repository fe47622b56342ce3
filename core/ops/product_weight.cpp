#include "core/ops/product_weight.h"

#include "core/autograd/var.h"
#include "core/device/dispatch.h"

namespace tessera {

Tensor weight_of_products(const Tensor& weight, DType dtype) {
  return grad_enabled() ? TESSERA_BACKEND(weight.device(), product_weight, weight, dtype) : weight;
}

}  // namespace tessera
