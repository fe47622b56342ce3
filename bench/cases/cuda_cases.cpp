#include "bench/cases/cuda_cases.h"

#include <memory>

#include "bench/rivals/cublas_rival.h"
#include "bench/rivals/cudnn_rival.h"
#include "core/device/precision.h"
#include "core/ops/matmul.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

// Sides differ in the order of their sums. In bf16 they also differ in where they round outputs to 2^-9, over sums of random
// signs. In tf32 operands are rounded to 2^-11.
double tolerance_of(const std::string& precision) {
  if (precision == "f32") return 1e-3;
  return precision == "tf32" ? 5e-3 : 2e-2;
}

DType dtype_of(const std::string& precision) { return precision == "bf16" ? DType::bf16 : DType::f32; }

double bytes_of(const ConvShape& shape, DType dtype) {
  return static_cast<double>(shape.x().numel() + shape.weight().numel() + shape.y().numel()) *
         static_cast<double>(size_of(dtype));
}

// The tensors of a pass, one entry per set. The operand that the pass writes is empty.
std::vector<ConvTensors> conv_sets(ConvPass pass, const ConvShape& shape, DType images, DType weights, Device device,
                                   std::size_t sets) {
  const auto operand = [&](bool written, const Shape& of, const char* name, DType dtype) {
    return written ? empty_sets(of, dtype, device, sets) : random_sets(of, name, dtype, device, sets);
  };
  const std::vector<Tensor> x = operand(pass == ConvPass::backward_input, shape.x(), "x", images);
  const std::vector<Tensor> weight = operand(pass == ConvPass::backward_weight, shape.weight(), "weight", weights);
  const std::vector<Tensor> y = operand(pass == ConvPass::forward, shape.y(), "y", images);
  std::vector<ConvTensors> out;
  for (std::size_t set = 0; set < sets; ++set) out.push_back({x[set], weight[set], y[set]});
  return out;
}

RotatedSide our_conv(std::string name, ConvPass pass, const ConvShape& shape, const std::vector<ConvTensors>& sets, bool tf32) {
  const auto shared = std::make_shared<const std::vector<ConvTensors>>(sets);
  const auto run = [=, options = shape.options()](std::size_t set) {
    const Tf32Products scope(tf32);
    const ConvTensors& t = (*shared)[set];
    switch (pass) {
      case ConvPass::forward: return cuda::conv2d_forward(t.x, t.weight, {}, t.y, options);
      case ConvPass::backward_input: return cuda::conv2d_backward_input(t.y, t.weight, t.x, options);
      case ConvPass::backward_weight: return cuda::conv2d_backward_weight(t.x, t.y, t.weight, {}, options);
    }
  };
  return {std::move(name), run, sets.front().result(pass)};
}

// Copies of the same numbers, all in the images' dtype, with separate outputs.
std::vector<ConvTensors> rival_sets(ConvPass pass, const std::vector<ConvTensors>& ours) {
  const DType dtype = pass == ConvPass::forward ? ours.front().x.dtype() : ours.front().y.dtype();
  const auto copy = [&](const Tensor& t, bool written) {
    return written ? Tensor::empty(t.shape(), dtype, t.device()) : t.to(dtype);
  };
  std::vector<ConvTensors> out;
  for (const ConvTensors& t : ours) {
    out.push_back({copy(t.x, pass == ConvPass::backward_input), copy(t.weight, pass == ConvPass::backward_weight),
                   copy(t.y, pass == ConvPass::forward)});
  }
  return out;
}

}  // namespace

std::vector<ProductShape> cuda_product_shapes() {
  return {{1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192},
          {256, 1000, 2048},  {4096, 4096, 1024}, {16384, 512, 2048}, {65536, 64, 576}};
}

std::vector<ConvShape> cuda_conv_shapes() {
  return {{128, 16, 16, 32, 3},   {128, 64, 64, 8, 3},           {256, 3, 64, 224, 7, 2}, {256, 64, 64, 56, 3},
          {256, 256, 64, 56, 1},  {256, 128, 128, 56, 3, 2},     {256, 256, 256, 14, 3},  {256, 512, 512, 7, 3},
          {256, 512, 2048, 7, 1}, {256, 128, 128, 56, 3, 1, 128}};
}

RotatedCase cuda_product_case(const ProductShape& shape, const std::string& precision, Device device) {
  const DType dtype = dtype_of(precision);
  const bool tf32 = precision == "tf32";
  const auto elements = static_cast<double>(shape.m * shape.k + shape.k * shape.n + shape.m * shape.n);
  const std::size_t sets = sets_beyond_caches(elements * static_cast<double>(size_of(dtype)));
  const std::vector<Tensor> a = random_sets({shape.m, shape.k}, "a", dtype, device, sets);
  const std::vector<Tensor> b = random_sets({shape.k, shape.n}, "b", dtype, device, sets);
  const std::vector<Tensor> y = empty_sets({shape.m, shape.n}, dtype, device, sets);
  std::vector<Product> products;
  for (std::size_t set = 0; set < sets; ++set) {
    products.push_back({shape, a[set], b[set], Tensor::empty({shape.m, shape.n}, dtype, device)});
  }
  const auto run = [=](std::size_t set) {
    const Tf32Products scope(tf32);
    const auto batch_of_one = [](const Tensor& t) { return t.reshape({1, t.dim(0), t.dim(1)}); };
    cuda::matmul(batch_of_one(a[set]), batch_of_one(b[set]), batch_of_one(y[set]), {});
  };
  return {.op = "matmul",
          .shape = to_string(shape),
          .pass = "forward",
          .precision = precision,
          .flops = shape.flops(),
          .sets = sets,
          .ours = {{"tessera", run, y.front()}},
          .rivals = cublas_rivals(products, tf32),
          .tolerance = tolerance_of(precision)};
}

RotatedCase cuda_conv_case(ConvPass pass, const ConvShape& shape, const std::string& precision, Device device) {
  const DType dtype = dtype_of(precision);
  const bool tf32 = precision == "tf32";
  const std::size_t sets = sets_beyond_caches(bytes_of(shape, dtype));
  const std::vector<ConvTensors> tensors = conv_sets(pass, shape, dtype, parameter_dtype(dtype), device, sets);
  return {.op = "conv2d",
          .shape = to_string(shape),
          .pass = std::string(to_string(pass)),
          .precision = precision,
          .flops = shape.flops(),
          .sets = sets,
          .ours = {our_conv("tessera", pass, shape, tensors, tf32)},
          .rivals = cudnn_rivals(pass, shape, rival_sets(pass, tensors), tf32),
          .tolerance = tolerance_of(precision)};
}

}  // namespace tessera::bench
