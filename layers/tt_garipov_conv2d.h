// A convolution whose weight [out, kh, kw, in] is a tensor train (core/linalg/tt.h) over kh kw and over pairs of modes of its
// output and input channels, o_1 i_1, ..., o_d i_d: out = o_1 ... o_d and in = i_1 ... i_d, the last running fastest (Garipov,
// Podoprikhin, Novikov & Vetrov, 2016, "Ultimate tensorization: compressing convolutional and FC layers alike",
// arXiv:1611.03214). Forward multiplies the cores to the weight, a product of weights alone, and runs the dense convolution with
// it: from core to core the multiply-adds would be more than the dense layer's. x [n, h, w, in] -> y [n, oh, ow, out], gradients
// to x and every parameter. Saved for backward are x and the products of cores.
#pragma once

#include "core/config/fields.h"
#include "layers/compressed.h"
#include "layers/conv2d.h"
#include "layers/tt_cores.h"

namespace tessera {

struct TtGaripovConv2dConfig {
  Conv2dConfig conv;  // of one group
  Modes out_modes = {}, in_modes = {};  // as many of one as of the other, two to four; empty: two, balanced
  std::vector<std::int64_t> ranks = {};  // as many as modes of a side; empty: 1 each
  void fields(Fields& f);
};

// The modes of the train: kh kw, o_1 i_1, ..., o_d i_d.
Modes garipov_modes(const Extent& kernel, const Modes& out_modes, const Modes& in_modes);
// A weight as the tensor of these modes that the cores decompose, and back.
Tensor garipov_tensor(const Tensor& weight, const Modes& out_modes, const Modes& in_modes);
Tensor garipov_weight(const Tensor& tensor, const Extent& kernel, const Modes& out_modes, const Modes& in_modes);
// The weight that the cores compose, with gradients to every one.
Var garipov_weight(std::span<const Var> cores, const Extent& kernel, const Modes& out_modes, const Modes& in_modes);
// What a layer that trains from its own cores refuses: another number of ranks, a rank below 1, and a core of more elements than
// the whole weight has. Larger ranks than a decomposition can have (tt_rank_problems) are legal: the paper's networks have ranks
// 22 and 27 after the nine taps of a kernel.
std::vector<RankProblem> garipov_rank_problems(const Modes& modes, const Ranks& ranks);

// Parameters: core1 [1, kh kw, r_1], core2 [r_1, o_1 i_1, r_2], ..., core(d+1) [r_d, o_d i_d, 1], bias [out].
class TtGaripovConv2d final : public Convolution, public CompressedLayer {
 public:
  using Config = TtGaripovConv2dConfig;
  explicit TtGaripovConv2d(const TtGaripovConv2dConfig& config);  // throws ConfigError on invalid modes or ranks

  void set_cores(std::span<const Tensor> cores) { cores_.set(cores); }
  void take_traits(const Conv2d& dense);  // bias and trainability

  std::string_view kind() const override { return "tt_garipov_conv2d"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  // A Conv2d of the composed weight: channels that are scaled one by one are no train of the same ranks.
  std::unique_ptr<Module> scaled(const Tensor& scale, const Tensor& shift) const override;
  // MACs are the dense convolution's; the products of cores do not grow with the batch and are left out.
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  // Normal numbers of one variance for all cores, so that the composed weight has the variance 2 / (out kh kw) of a dense layer's
  // initial values (He et al., ICCV 2015, eq. 14).
  void reset_parameters(std::uint64_t seed) override;

  Ranks ranks() const override { return tt_ranks(config_.ranks); }
  Tensor dense_weight() const override;
  std::unique_ptr<Module> to_dense() const override { return dense(); }
  std::vector<TorchPart> torch_tensors() const override;

 private:
  Var weight() const;
  std::unique_ptr<Conv2d> dense() const;
  Var forward_relu(const Var& x, const Var& residual, const Context& context) override;

  TtGaripovConv2dConfig config_;
  TtCores cores_;
  Parameter* bias_ = nullptr;
  std::shared_ptr<const void> composed_ = std::make_shared<int>();  // of made_once()
};

}  // namespace tessera
