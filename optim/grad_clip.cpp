#include "optim/grad_clip.h"

#include "core/device/dispatch.h"
#include "core/support/error.h"

namespace tessera {

Tensor clip_grad_norm(const std::vector<NamedParameter>& parameters, double max_norm) {
  TESSERA_CHECK(max_norm > 0, InternalError, "clip_grad_norm: max_norm is ", max_norm, "; must be above 0");
  std::vector<Tensor> grads;
  for (const NamedParameter& named : parameters) {
    Parameter& parameter = *named.parameter;
    if (!parameter.trainable() || !parameter.grad().defined()) continue;
    // Ops may hand one tensor to two inputs; scaling it in place for both would scale it twice.
    if (!parameter.grad().sole_owner() || !parameter.grad().is_contiguous()) parameter.set_grad(parameter.grad().clone());
    grads.push_back(parameter.grad());
  }
  // The norm is on the parameters' device, even if there is no gradient.
  const Device device = parameters.empty() ? Device() : parameters.front().parameter->value().device();
  Tensor norm = Tensor::empty({}, DType::f64, device);
  TESSERA_DISPATCH(device, global_norm, grads, norm);
  TESSERA_DISPATCH(norm.device(), scale_to_norm, grads, norm, max_norm);
  return norm;
}

}  // namespace tessera
