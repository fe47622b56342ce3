// What convolutions of every format can do for inference, beside being modules.
#pragma once

#include <memory>

#include "core/nn/module.h"

namespace tessera {

class Convolution : public Module {
 public:
  // relu(y + residual), the residual may be undefined: one op while nothing is recorded (core/ops/conv2d.h).
  Var add_relu(const Var& x, const Var& residual, const Context& context);
  // A convolution, of the same format where the format allows it, that answers scale y + shift by channel, f64 [out], rounded
  // once. Masks and trainability stay behind.
  virtual std::unique_ptr<Module> scaled(const Tensor& scale, const Tensor& shift) const = 0;

 private:
  virtual Var forward_relu(const Var& x, const Var& residual, const Context& context) = 0;
};

// The parameters of scaled(): filters [out, ...] times scale, and bias scale + shift, where the bias may be undefined.
Tensor scaled_filters(const Tensor& filters, const Tensor& scale);
Tensor scaled_bias(const Tensor& bias, const Tensor& scale, const Tensor& shift);

// Whether a module is a Convolution, or a Sequential whose last child is one, such as a chain of sparse factors.
bool ends_in_convolution(const Module& module);

// relu(norm(conv(x)) + residual), the residual may be undefined: one op where `norm` is an Identity and `conv` ends in a
// convolution, two where `norm` is a BatchNorm.
Var conv_norm_add_relu(Module& conv, Module& norm, const Var& x, const Var& residual, const Context& context);

}  // namespace tessera
