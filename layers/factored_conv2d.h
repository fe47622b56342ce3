// What the convolutions have in common whose weight is composed of filters. These are applied one after the other, with nothing
// in between: two 1x1 convolutions, a kh x 1 and a 1 x kw one, and so on. Each filter is a parameter [out, kh, kw, in / groups]
// with a stride, padding and groups of its own; the bias [out] belongs to the last. x [n, h, w, in] -> y [n, oh, ow, out] with
// oh and ow of the dense convolution's, gradients to x and every parameter. Saved for backward are x, the filters and the images
// between; where the clock chose the composed weight (layers/execution.h), x, the filters and that weight.
//
// With `batch_norm` a BatchNorm stands behind every filter but the last: children norm0, norm1, ... Then the first filter has the
// whole padding. If a later filter padded, its zeros would lack the norm's shift, and the layer would equal no dense convolution.
// The statistics count the border. Such a layer is always a chain, because a batch's statistics are taken of the images between
// the filters. In evaluation it is a dense convolution with a bias.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/ops/conv2d.h"
#include "layers/batch_norm.h"
#include "layers/compressed.h"
#include "layers/conv2d.h"
#include "layers/convolution.h"
#include "layers/execution.h"

namespace tessera {

class FactoredConv2d : public Convolution, public CompressedLayer {
 public:
  // Runs as "chain" or "composed" (layers/execution.h). Throws ConfigError on context.recompute in training where there are
  // norms.
  Var forward(const Var& x, const Context& context) override;
  std::unique_ptr<Module> scaled(const Tensor& scale, const Tensor& shift) const override;  // without norms
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;  // MACs are those of its filters
  // A filter's variance is its gain / fan_out, so that the composed weight has the variance 2 / (out kh kw) of a dense layer's
  // initial values (He et al., ICCV 2015, eq. 14).
  void reset_parameters(std::uint64_t seed) override;

  Tensor dense_weight() const override;  // [out, kh, kw, in], composed in double; with norms, scaled by their running statistics
  std::unique_ptr<Module> to_dense() const override;  // a Conv2d; with norms it has a bias, which holds their shift
  std::vector<TorchPart> torch_tensors() const override;
  std::string why_not_recompute() const override;
  bool has_norms() const noexcept { return batch_norm_; }
  // A layer of the same form without norms and with a bias that answers what this one does in evaluation.
  std::unique_ptr<Module> without_norms() const;

  // What comes after the last filter: the bias, and in inference a residual and a rectifier. Bias and residual may be undefined.
  struct Tail {
    Var bias = {}, residual = {};
    bool relu = false;
  };

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
  FactoredConv2d(std::string_view kind, const Conv2dConfig& conv, bool batch_norm);
  // The padding of `options` is that of a layer without norms.
  void add_filter(const std::string& name, const Shape& shape, Conv2dOptions options = {}, double gain = 1);
  void add_bias();  // behind the last filter, where the convolution has one
  // Leaves `batch_norm: false` out, so that configs in older files and recorded choices still compare equal.
  static Value without_default_norm(Value config);

  // One convolution for each filter, and a norm behind each but the last where there are norms. `context` is theirs.
  virtual Var chain(const Var& x, std::span<const Var> filters, const Tail& tail, const Context& context) const;

 private:
  // The weight [out, kh, kw, in] that the filters compose; its elements may be in another shape.
  virtual Var composed(std::span<const Var> filters) const = 0;
  // A layer of the same ranks as this one with another geometry, without norms.
  virtual std::unique_ptr<FactoredConv2d> with(const Conv2dConfig& conv) const = 0;
  // What evaluation does, as filters alone with a bias behind them; f64 on the host.
  struct Inference {
    std::vector<Tensor> filters;
    Tensor bias;  // [out]
  };
  Inference inference() const;
  Var forward_relu(const Var& x, const Var& residual, const Context& context) override;
  Shape weight_shape() const { return {conv_.out, conv_.kernel.h, conv_.kernel.w, conv_.in}; }
  Conv2dOptions window() const { return {.stride = conv_.stride, .padding = conv_.padding, .dilation = conv_.dilation}; }
  Var run_way(std::size_t way, std::span<const Var> operands, const Tail& tail) const;
  Var apply(const Var& x, const Tail& tail, const Context& context);
  Var bias() const { return bias_ != nullptr ? bias_->var() : Var(); }

  Conv2dConfig conv_;
  bool batch_norm_;
  std::vector<Filter> filters_;
  Parameter* bias_ = nullptr;
  Execution execution_;
  std::shared_ptr<const void> weight_ = std::make_shared<int>();  // of made_once()
};

void batch_norm_field(Fields& f, bool& batch_norm);

}  // namespace tessera
