// The interface of a backend that computes a whole Tucker-2 convolution, forward and backward, as one op
// (core/ops/tucker_conv.h).
#pragma once

#include "core/tensor.h"

namespace tessera {

// One value for each operand of the op; undefined: there is none, or it is not wanted.
struct TuckerConvTensors {
  Tensor x, in_factor, core, out_factor, bias;
};

// The kernels for one shape. All tensors are contiguous.
class FusedTuckerConv {
 public:
  virtual ~FusedTuckerConv() = default;
  virtual bool predicted_to_win() const = 0;
  virtual double flops() const = 0;  // of a forward
  // The narrow images [n, h, w, d1] and [n, oh, ow, d2] may be undefined; then they are not stored.
  virtual void forward(const TuckerConvTensors& operands, const Tensor& residual, bool relu, const Tensor& y,
                       const Tensor& narrow_in, const Tensor& narrow_out) const = 0;
  virtual void backward(const TuckerConvTensors& operands, const Tensor& narrow_in, const Tensor& narrow_out,
                        const Tensor& grad_y, const TuckerConvTensors& grads) const = 0;

 protected:
  FusedTuckerConv() = default;
};

}  // namespace tessera
