#include "core/nn/parameter.h"

#include "core/device/dispatch.h"
#include "core/ops/arithmetic.h"
#include "core/ops/where.h"
#include "core/support/error.h"

namespace tessera {

void Parameter::set_value(Tensor value) {
  TESSERA_CHECK(value.defined() && value.shape() == this->value().shape() && value.dtype() == this->value().dtype(), ShapeError,
                "parameter ", name_, ": new value is ", describe(value), ", needs ", describe(this->value()));
  var_.set_value(value.contiguous());
}

void Parameter::set_mask(Tensor mask) {
  if (mask.defined()) {
    TESSERA_CHECK(mask.shape() == value().shape() && mask.dtype() == DType::u8, ShapeError, "parameter ", name_, ": mask is ",
                  describe(mask), ", needs u8 ", value().shape());
    mask = mask.to(value().device());
    Tensor masked = Tensor::empty_like(value());
    TESSERA_BACKEND(masked.device(), where_backward, mask, value(), false, masked);
    var_.set_value(std::move(masked));
  }
  mask_ = std::move(mask);
}

void Parameter::mask_grad() {
  if (!mask_.defined() || !grad().defined()) return;
  const NoGrad no_grad;
  set_grad(mul(Var(grad()), Var(mask_.to(grad().dtype()))).value());
}

void Parameter::move_to(Device device) {
  if (value().device() == device) return;
  var_.set_value(value().to(device));
  if (mask_.defined()) mask_ = mask_.to(device);
}

}  // namespace tessera
