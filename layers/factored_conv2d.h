// What convolutions have in common whose weight is composed of filters that are applied one behind the other, with nothing in
// between: two 1x1 convolutions, a kh x 1 and a 1 x kw one, and so on. Each filter is a parameter [out, kh, kw, in / groups] with
// a stride, padding and groups of its own; the bias [out] belongs to the last. x [n, h, w, in] -> y [n, oh, ow, out] with oh and
// ow of the dense convolution's, gradients to x and every parameter. Saved for backward are x, the filters and the images between.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/ops/conv2d.h"
#include "layers/compressed.h"
#include "layers/conv2d.h"
#include "layers/convolution.h"

namespace tessera {

class FactoredConv2d : public Convolution, public CompressedLayer {
 public:
  Var forward(const Var& x, const Context& context) override;
  std::unique_ptr<Module> scaled(const Tensor& scale, const Tensor& shift) const override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;  // MACs are those of its filters
  // A filter's variance is its gain / fan_out, so that the composed weight has the variance 2 / (out kh kw) of a dense layer's
  // initial values (He et al., ICCV 2015, eq. 14).
  void reset_parameters(std::uint64_t seed) override;

  std::unique_ptr<Module> to_dense() const override;  // a Conv2d
  std::vector<TorchPart> torch_tensors() const override;

  struct Filter {
    Parameter* parameter;
    Conv2dOptions options;
    double gain;  // of the initial values
  };
  std::span<const Filter> filters() const noexcept { return filters_; }  // from the first to the last

  // One value for each filter, from the first to the last; any shape of as many elements.
  void set_factors(std::span<const Tensor> factors);
  // Bias and trainability of a dense layer of the same geometry.
  void take_traits(const Conv2d& dense);

 protected:
  // `conv` is what the dense convolution would be. Throws ConfigError on groups.
  FactoredConv2d(std::string_view kind, const Conv2dConfig& conv);
  void add_filter(const std::string& name, const Shape& shape, const Conv2dOptions& options = {}, double gain = 1);
  void add_bias();  // behind the last filter, where the convolution has one

  Var bias() const { return bias_ ? bias_->var() : Var(); }

 private:
  // A layer of the same ranks as this one with another geometry.
  virtual std::unique_ptr<FactoredConv2d> with(const Conv2dConfig& conv) const = 0;
  Var forward_relu(const Var& x, const Var& residual, const Context& context) override;
  Var before_last(Var x) const;

  Conv2dConfig conv_;
  std::vector<Filter> filters_;
  Parameter* bias_ = nullptr;
};

}  // namespace tessera
