#include "layers/convolution.h"

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/sequential.h"

namespace tessera {

Var Convolution::add_relu(const Var& x, const Var& residual, const Context& context) {
  return run(x, [&] { return forward_relu(x, residual, context); });
}

namespace {

// Computes in double precision and rounds once. `filters` are [out, ...], contiguous.
template <class T>
void scale_filters(const Tensor& filters, const double* scale) {
  const std::int64_t size = filters.numel() / filters.dim(0);
  T* filter = filters.data<T>();
  for (std::int64_t i = 0; i < filters.dim(0); ++i, filter += size) {
    const double factor = scale[i];
    for (std::int64_t j = 0; j < size; ++j) filter[j] = static_cast<T>(static_cast<double>(filter[j]) * factor);
  }
}

}  // namespace

Tensor scaled_filters(const Tensor& filters, const Tensor& scale) {
  const bool wide = filters.dtype() == DType::f64;
  const Tensor result = (wide ? filters : filters.to(DType::f32)).clone();
  wide ? scale_filters<double>(result, scale.data<double>()) : scale_filters<float>(result, scale.data<double>());
  return result.to(filters.dtype());
}

Tensor scaled_bias(const Tensor& bias, const Tensor& scale, const Tensor& shift) {
  Tensor result = shift.clone();
  if (!bias.defined()) return result.to(DType::f32);
  const Tensor exact = bias.to(DType::f64);
  for (std::int64_t c = 0; c < result.numel(); ++c) result.data<double>()[c] += exact.data<double>()[c] * scale.data<double>()[c];
  return result.to(bias.dtype());
}

bool ends_in_convolution(const Module& module) {
  if (dynamic_cast<const Convolution*>(&module) != nullptr) return true;
  const auto* const chain = dynamic_cast<const Sequential*>(&module);
  return chain != nullptr && !chain->children().empty() &&
         dynamic_cast<const Convolution*>(chain->children().back().module.get()) != nullptr;
}

Var conv_norm_add_relu(Module& conv, Module& norm, const Var& x, const Var& residual, const Context& context) {
  if (dynamic_cast<Identity*>(&norm) != nullptr && ends_in_convolution(conv)) {
    if (auto* const convolution = dynamic_cast<Convolution*>(&conv)) return convolution->add_relu(x, residual, context);
    return dynamic_cast<Sequential&>(conv).add_relu(x, residual, context);
  }
  return norm_add_relu(norm, conv(x, context), residual, context);
}

}  // namespace tessera
