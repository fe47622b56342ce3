// The matrix products and convolutions that op_bench times: what networks of this project's kind are made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/conv2d.h"

namespace tessera::bench {

struct ProductShape {
  std::int64_t m, n, k;

  double flops() const { return 2.0 * static_cast<double>(m * n) * static_cast<double>(k); }
};
std::string to_string(const ProductShape& shape);  // "1024x64x576": m, n, k
std::vector<ProductShape> product_shapes();

enum class ConvPass { forward, backward_input, backward_weight };
std::string_view to_string(ConvPass pass);

// Square images and windows.
struct ConvShape {
  std::int64_t n, in, out, size, kernel;
  std::int64_t stride = 1;
  std::int64_t groups = 1;

  std::int64_t padding() const { return kernel / 2; }
  std::int64_t out_size() const { return (size + 2 * padding() - kernel) / stride + 1; }
  bool pointwise() const { return kernel == 1 && stride == 1 && groups == 1; }
  Shape x() const { return {n, size, size, in}; }
  Shape weight() const { return {out, kernel, kernel, in / groups}; }
  Shape y() const { return {n, out_size(), out_size(), out}; }
  Conv2dOptions options() const;
  double flops() const;  // of one pass; taps in the padding count
};
std::string to_string(const ConvShape& shape);  // "8x56x56x64 -> 64, 3x3", and ", stride 2", ", depthwise", ", 4 groups"
std::vector<ConvShape> conv_shapes();
// The passes that a training step runs: a gradient of images is never asked for.
std::vector<ConvPass> passes_of(const ConvShape& shape);

}  // namespace tessera::bench
