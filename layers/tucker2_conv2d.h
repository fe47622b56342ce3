// A convolution whose weight is held in Tucker-2 form on its two channel modes (Kim et al., ICLR 2016, "Compression of deep
// convolutional neural networks for fast and low power mobile applications", section 3):
// W[o, y, x, i] = sum_ab out_factor[o, a] core[a, y, x, b] in_factor[b, i]. Forward is 1x1 -> core -> 1x1 with nothing in
// between; the core carries kernel, stride, padding and dilation. A mode of full rank needs no factor (the same, "Tucker-1"):
// its factor would be square, could be multiplied into the core, and would only cost time. x [n, h, w, in] -> y [n, oh, ow,
// out], gradients to x and every parameter.
#pragma once

#include <memory>

#include "core/config/fields.h"
#include "core/linalg/tucker.h"
#include "layers/factored_conv2d.h"

namespace tessera {

struct Tucker2Conv2dConfig {
  Conv2dConfig conv;  // of one group
  std::int64_t rank_in = 1, rank_out = 1;
  bool in_factor = true, out_factor = true;  // false at full rank only
  bool batch_norm = false;  // layers/factored_conv2d.h; of two filters or three
  void fields(Fields& f);
};

struct Tucker2Ranks {
  std::int64_t out = 1;
  std::int64_t in = 1;
  friend bool operator==(const Tucker2Ranks&, const Tucker2Ranks&) = default;
};

// What no weight [out, kh, kw, in] with kh kw = taps can have: ranks outside of 1..out and 1..in, and a rank above taps times the
// other, which the core's unfolding cannot have.
std::vector<RankProblem> tucker2_rank_problems(std::int64_t out, std::int64_t in, std::int64_t taps, Tucker2Ranks ranks);

// A weight [out, kh, kw, in] in Tucker-2 form: out_factor [out, a], core [a, kh, kw, b], in_factor [b, in]. A mode of full rank
// has no factor.
struct Tucker2Factors {
  Tensor out_factor, core, in_factor;
};
// HOOI on the modes that have a factor, computed in double, in the weight's dtype. Throws NumericError on NaN or Inf.
Tucker2Factors tucker2_project(const Tensor& weight, Tucker2Ranks ranks, const linalg::HooiOptions& options = {});
Tensor tucker2_compose(const Tucker2Factors& factors);

// Parameters: in_factor [rank_in, 1, 1, in], core [rank_out, kh, kw, rank_in], out_factor [out, 1, 1, rank_out], bias [out]. The
// config says which of the factors there are, and whether there is a bias.
class Tucker2Conv2d final : public FactoredConv2d {
 public:
  using Config = Tucker2Conv2dConfig;
  explicit Tucker2Conv2d(const Tucker2Conv2dConfig& config);  // throws ConfigError on invalid ranks or factors

  // The layer whose dense_weight() approximates `dense`'s: HOOI on modes out and in, computed in double. Bias and trainability
  // are copied. Modes of full rank get no factor. Throws ConfigError on groups or ranks out of range, NumericError on NaN or Inf.
  static std::unique_ptr<Tucker2Conv2d> from_dense(const Conv2d& dense, Tucker2Ranks ranks,
                                                   const linalg::HooiOptions& options = {});

  // The same without its values: factors and core are zeros. Nothing is decomposed.
  static std::unique_ptr<Tucker2Conv2d> shaped_for(const Conv2d& dense, Tucker2Ranks ranks);
  void set_factors(const Tucker2Factors& factors);

  std::string_view kind() const override { return "tucker2_conv2d"; }
  Value config() const override;

  const Tucker2Conv2dConfig& options() const noexcept { return config_; }
  Ranks ranks() const override { return {{"out", config_.rank_out}, {"in", config_.rank_in}}; }

 private:
  // Without norms tucker2_conv2d() of core/ops/tucker_conv.h.
  Var chain(const Var& x, std::span<const Var> filters, const Tail& tail, const Context& context) const override;
  Var composed(std::span<const Var> filters) const override;
  std::unique_ptr<FactoredConv2d> with(const Conv2dConfig& conv) const override;
  std::size_t core() const { return config_.in_factor ? 1 : 0; }  // its index among the filters

  Tucker2Conv2dConfig config_;
};

}  // namespace tessera
