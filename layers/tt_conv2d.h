// A convolution whose weight [out, kh, kw, in] is a tensor train (core/linalg/tt.h) over the modes o_1, ..., o_p of its output
// channels, kh kw, and i_1, ..., i_q of its input channels: out = o_1 ... o_p and in = i_1 ... i_q, the last running fastest
// (Yin et al., CVPR 2021, "Towards efficient tensor decomposition-based DNN model compression with optimization framework",
// section 4). With p = q = 1 this would be Tucker-2. Forward multiplies the cores of each side, a product of weights alone, and
// then runs 1x1 -> core -> 1x1 as Tucker-2 does; or it multiplies all of them and convolves with their product, where the clock
// chose that (layers/execution.h). x [n, h, w, in] -> y [n, oh, ow, out], gradients to x and every parameter.
#pragma once

#include "core/config/fields.h"
#include "layers/conv2d.h"
#include "layers/convolution.h"
#include "layers/execution.h"
#include "layers/tt_cores.h"

namespace tessera {

struct TtConv2dConfig {
  Conv2dConfig conv;  // of one group
  Modes out_modes = {}, in_modes = {};  // two or three of each; empty: two, balanced
  std::vector<std::int64_t> ranks = {};  // empty: 1 each
  void fields(Fields& f);
};

// out_modes, kh kw, in_modes.
Modes tt_conv_modes(const Conv2dConfig& conv, const Modes& out_modes, const Modes& in_modes);

// Parameters: core1 [1, o_1, r_1], ..., core(p+1) [r_p, kh kw, r_(p+1)], ..., core(p+q+1) [r_(p+q), i_q, 1], bias [out].
class TtConv2d final : public Convolution, public CompressedLayer {
 public:
  using Config = TtConv2dConfig;
  explicit TtConv2d(const TtConv2dConfig& config);  // throws ConfigError on invalid modes or ranks

  void set_cores(std::span<const Tensor> cores) { cores_.set(cores); }
  void take_traits(const Conv2d& dense);  // bias and trainability

  std::string_view kind() const override { return "tt_conv2d"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  // A Tucker2Conv2d of the multiplied cores: channels that are scaled one by one are no train of the same ranks.
  std::unique_ptr<Module> scaled(const Tensor& scale, const Tensor& shift) const override;
  // MACs are those of the three convolutions; the products of cores do not grow with the batch and are left out.
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  // Normal numbers of one variance for all cores, so that the composed weight has the variance 2 / (out kh kw) of a dense layer's
  // initial values (He et al., ICCV 2015, eq. 14).
  void reset_parameters(std::uint64_t seed) override;

  Ranks ranks() const override { return tt_ranks(config_.ranks); }
  Tensor dense_weight() const override;
  std::unique_ptr<Module> to_dense() const override;  // a Conv2d
  std::vector<TorchPart> torch_tensors() const override;

 private:
  struct Filters {  // of the three convolutions
    Var in_factor, core, out_factor;
  };
  Filters filters(std::span<const Var> cores) const;
  Shape weight_shape() const;
  Var run_way(std::size_t way, std::span<const Var> operands, const Var& bias, const Var& residual, bool relu) const;
  Var apply(const Var& x, const Var& residual, bool relu, const Context& context);
  Var forward_relu(const Var& x, const Var& residual, const Context& context) override;

  TtConv2dConfig config_;
  TtCores cores_;
  Parameter* bias_ = nullptr;
  Execution execution_;
  // Keys for made_once().
  std::shared_ptr<const void> in_side_ = std::make_shared<int>(), out_side_ = std::make_shared<int>(),
                              weight_ = std::make_shared<int>();
};

}  // namespace tessera
