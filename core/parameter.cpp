#include "core/parameter.h"

#include "core/error.h"

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
    require_cpu(mask.device(), "set_mask");
    Tensor masked = value().clone();
    dispatch_real(masked.dtype(), "set_mask", [&]<class T>() {
      const Tensor keep = mask.contiguous();
      for (std::int64_t i = 0; i < masked.numel(); ++i) {
        if (keep.data<std::uint8_t>()[i] == 0) masked.data<T>()[i] = T(0);
      }
    });
    var_.set_value(std::move(masked));
  }
  mask_ = std::move(mask);
}

}  // namespace tessera
