// A 1x1 convolution whose weight is the product of two factors (layers/svd_factors.h): two 1x1 convolutions with nothing in
// between, of which the first has stride and padding. x [n, h, w, in] -> y [n, oh, ow, out], oh = (h + 2 padding - 1) / stride +
// 1.
#pragma once

#include <memory>

#include "core/config/fields.h"
#include "core/ops/conv2d.h"
#include "layers/compressed.h"
#include "layers/conv2d.h"
#include "layers/svd_factors.h"

namespace tessera {

struct SvdConv2dConfig {
  std::int64_t in = 1, out = 1;
  Extent stride{1, 1}, padding{0, 0};
  std::int64_t rank = 1;
  bool bias = true;
  void fields(Fields& f);
};

// Parameters: in_factor [rank, 1, 1, in], out_factor [out, 1, 1, rank], bias [out].
class SvdConv2d final : public Convolution, public CompressedLayer {
 public:
  using Config = SvdConv2dConfig;
  explicit SvdConv2d(const SvdConv2dConfig& config);  // throws ConfigError on a rank that cannot be

  // The layer without its values: factors are zeros, bias and trainability are the dense layer's, which has a 1x1 kernel and one
  // group.
  static std::unique_ptr<SvdConv2d> shaped_for(const Conv2d& dense, std::int64_t rank);
  void set_factors(const SvdFactors& factors);

  std::string_view kind() const override { return "svd_conv2d"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  std::unique_ptr<Module> scaled(const Tensor& scale, const Tensor& shift) const override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;  // MACs are those of its convolutions
  // The first convolution's variance is 1 / rank, the second's 2 / out, so that the product has the variance 2 / out of a dense
  // layer's initial values (He et al., ICCV 2015, eq. 14).
  void reset_parameters(std::uint64_t seed) override;

  Ranks ranks() const override { return {{"rank", config_.rank}}; }
  Tensor dense_weight() const override;  // [out, 1, 1, in]
  std::unique_ptr<Module> to_dense() const override;  // a Conv2d
  std::vector<TorchPart> torch_tensors() const override;

 private:
  Var forward_relu(const Var& x, const Var& residual, const Context& context) override;
  Conv2dOptions first_options() const { return {.stride = config_.stride, .padding = config_.padding}; }

  SvdConv2dConfig config_;
  Parameter& in_factor_;
  Parameter& out_factor_;
  Parameter* bias_;  // null without a bias
};

}  // namespace tessera
