// A trainable tensor of a module: value, gradient, optional mask, and its dotted name.
#pragma once

#include <string>
#include <utility>

#include "core/autograd/var.h"

namespace tessera {

// What an optimiser may treat apart: weight decay usually spares all but weights. An embedding is a table whose rows are looked
// up: of tokens, positions or segments.
enum class ParameterRole { weight, bias, norm, embedding };

class Parameter {
 public:
  Parameter(std::string name, Tensor value, ParameterRole role)
      : name_(std::move(name)), role_(role), var_(std::move(value), /*requires_grad=*/true) {}
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  const std::string& name() const noexcept { return name_; }  // within its module: "weight"
  ParameterRole role() const noexcept { return role_; }
  const Var& var() const noexcept { return var_; }
  const Tensor& value() const { return var_.value(); }
  const Tensor& grad() const { return var_.grad(); }
  void set_value(Tensor value);  // same shape and dtype; drops the gradient
  void set_grad(Tensor grad) { var_.set_grad(std::move(grad)); }
  void zero_grad() { var_.set_grad({}); }
  bool trainable() const { return var_.requires_grad(); }
  void set_trainable(bool trainable) { var_.set_requires_grad(trainable); }

  // u8, value's shape, 1 = kept. Optimisers zero weight and state where it is 0 inside their update. Undefined = dense.
  const Tensor& mask() const noexcept { return mask_; }
  void set_mask(Tensor mask);  // also zeroes the value where the mask is 0; goes to the value's device
  void mask_grad();  // zeroes the gradient, if there is one, where the mask is 0; NaN and Inf stay to be found
  void move_to(Device device);  // value and mask; drops the gradient of a value that was elsewhere

 private:
  std::string name_;
  ParameterRole role_;
  Var var_;
  Tensor mask_;
};

}  // namespace tessera
