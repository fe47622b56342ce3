#include "layers/convolution.h"

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/sequential.h"

namespace tessera {

Var Convolution::add_relu(const Var& x, const Var& residual, const Context& context) {
  return run(x, [&] { return forward_relu(x, residual, context); });
}

Tensor scaled_filters(const Tensor& filters, const Tensor& scale) {
  Tensor result = filters.to(DType::f64).clone();
  const std::int64_t size = result.numel() / result.dim(0);
  for (std::int64_t i = 0; i < result.numel(); ++i) result.data<double>()[i] *= scale.data<double>()[i / size];
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
