// oneDNN called directly on the same tensors, in every way that a user of that library alone could choose: the rival of our
// matrix products and convolutions.
#pragma once

#include <vector>

#include "bench/dense_shapes.h"
#include "bench/turns.h"

namespace tessera::bench {

// y [m, n] = op(a) op(b), row-major; `transpose_a`: a is stored [k, m], `transpose_b`: b is stored [n, k].
struct Product {
  ProductShape shape;
  Tensor a, b, y;
  bool transpose_a = false;
  bool transpose_b = false;
};

// A pass writes the tensor that it computes and reads the other two. Images are NHWC, weights OHWI.
struct ConvTensors {
  Tensor x, weight, y;

  const Tensor& result(ConvPass pass) const;
};

// From and to our tensors, reorders included: matmul on plain and packed operands, sgemm, inner product.
std::vector<Contestant> product_rivals(const Product& product);
// b packed once, outside the timing.
std::vector<Contestant> packed_product_rivals(const Product& product);

// What the calls may rely on. `training`: weights change between calls, so that each call reorders or transforms them anew.
// `inference`, of the forward pass only: weights are constant; oneDNN's primitives for inference find them laid out, transformed
// for Winograd, before any timing.
enum class ConvUse { training, inference };

// From and to our tensors, reorders of images included: direct on plain layouts, on layouts of oneDNN's choice for all or some
// operands, on images in blocks of channels, Winograd, its own automatic choice; for a pointwise convolution also the matrix
// products.
std::vector<Contestant> conv_rivals(ConvPass pass, const ConvShape& shape, const ConvTensors& tensors,
                                    ConvUse use = ConvUse::training);
// Direct and Winograd on images that are blocked already and stay so, weights laid out before: without a result to compare. What
// oneDNN does inside a call stays in it: under `training` Winograd transforms the weights there.
std::vector<Contestant> blocked_conv_rivals(ConvPass pass, const ConvShape& shape, const ConvTensors& tensors,
                                            ConvUse use = ConvUse::training);

}  // namespace tessera::bench
