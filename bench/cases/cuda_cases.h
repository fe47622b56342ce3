// Our products and convolutions on a GPU, as wrappers that write into tensors, against cuBLASLt and cuDNN called directly.
#pragma once

#include "bench/device_rotation.h"
#include "bench/rivals/onednn_rival.h"

namespace tessera::bench {

// Shapes that fill a GPU: squares and the products of wide networks; the convolutions of ResNets at batch 256 and of ResNet-20.
std::vector<ProductShape> cuda_product_shapes();
std::vector<ConvShape> cuda_conv_shapes();

// `precision`: f32, tf32 or bf16. Weights and their gradients are f32 on our side, as in training; on the rival's of the images'
// dtype, so that rounding weights is our cost alone. Both outputs exist before the timing.
RotatedCase cuda_product_case(const ProductShape& shape, const std::string& precision, Device device);
RotatedCase cuda_conv_case(ConvPass pass, const ConvShape& shape, const std::string& precision, Device device);

}  // namespace tessera::bench
