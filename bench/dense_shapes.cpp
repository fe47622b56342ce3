#include "bench/dense_shapes.h"

#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr std::int64_t kColours = 3;

}  // namespace

std::string to_string(const ProductShape& shape) { return str(shape.m, 'x', shape.n, 'x', shape.k); }

std::vector<ProductShape> product_shapes() {
  return {{512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}, {128, 64, 576},   {512, 64, 576}, {1024, 64, 576},
          {4096, 64, 576}, {256, 1024, 784},   {4096, 384, 128},   {4096, 128, 512}, {64, 4096, 576}};
}

std::string_view to_string(ConvPass pass) {
  switch (pass) {
    case ConvPass::forward: return "forward";
    case ConvPass::backward_input: return "backward_input";
    case ConvPass::backward_weight: return "backward_weight";
  }
  throw InternalError("convolution: unknown pass");
}

Conv2dOptions ConvShape::options() const {
  return {.stride = {stride, stride}, .padding = {padding(), padding()}, .groups = groups};
}

double ConvShape::flops() const {
  return 2.0 * static_cast<double>(y().numel()) * static_cast<double>(kernel * kernel * (in / groups));
}

std::string to_string(const ConvShape& s) {
  std::string text = str(s.n, 'x', s.size, 'x', s.size, 'x', s.in, " -> ", s.out, ", ", s.kernel, 'x', s.kernel);
  if (s.stride != 1) text += str(", stride ", s.stride);
  if (s.groups != 1) text += s.groups == s.in ? ", depthwise" : str(", ", s.groups, " groups");
  return text;
}

std::vector<ConvShape> conv_shapes() {
  return {{128, 3, 16, 32, 3},          {128, 16, 16, 32, 3},         {128, 16, 32, 32, 3, 2},     {128, 32, 32, 16, 3},
          {128, 64, 64, 8, 3},          {8, 64, 64, 56, 3},           {8, 128, 128, 28, 3},        {8, 256, 256, 14, 3},
          {8, 512, 512, 7, 3},          {8, 256, 64, 56, 1},          {8, 64, 256, 56, 1},         {8, 3, 64, 224, 7, 2},
          {8, 128, 128, 56, 3, 1, 128}, {8, 128, 128, 56, 3, 2, 128}, {8, 512, 512, 14, 3, 1, 512}};
}

std::vector<ConvPass> passes_of(const ConvShape& shape) {
  if (shape.in == kColours) return {ConvPass::forward, ConvPass::backward_weight};
  return {ConvPass::forward, ConvPass::backward_input, ConvPass::backward_weight};
}

}  // namespace tessera::bench
