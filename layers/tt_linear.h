// A linear layer whose weight is a tensor train over pairs of modes (layers/tt_pairs.h; Novikov et al., NIPS 2015, "Tensorizing
// neural networks"), out = o_1 ... o_d and in = i_1 ... i_d. Forward multiplies the cores of each half, a product of weights
// alone, and applies the two halves to x one after the other, without a copy between: x [..., in] as [rows, i_left, i_right] ->
// [rows, i_left, r, o_right] -> [rows, o_left, o_right] = y [..., out], or by [rows, o_left, r, i_right] with the left half
// first. The third way multiplies all cores and applies their product. The clock chooses (layers/execution.h). Saved for backward
// are x, the halves and what is between them.
#pragma once

#include "core/config/fields.h"
#include "layers/compressed.h"
#include "layers/execution.h"
#include "layers/linear.h"
#include "layers/tt_cores.h"
#include "layers/tt_pairs.h"

namespace tessera {

struct TtLinearConfig {
  std::int64_t in = 1, out = 1;
  Modes out_modes = {}, in_modes = {};  // as many of one as of the other, two to four; empty: two, balanced
  std::vector<std::int64_t> ranks = {};  // empty: 1 each
  bool bias = true;
  void fields(Fields& f);
};

// Where to split the cores into two halves with the fewest multiply-adds for a row of x, and how many these are.
struct TtHalves {
  std::size_t left = 1;  // cores in the first half
  std::int64_t macs = 0;
};
TtHalves tt_halves(const Modes& out_modes, const Modes& in_modes, std::span<const std::int64_t> ranks);

// Parameters: core1 [1, o_1 i_1, r_1], ..., core(d) [r_(d-1), o_d i_d, 1], bias [out].
class TtLinear final : public Module, public CompressedLayer {
 public:
  using Config = TtLinearConfig;
  explicit TtLinear(const TtLinearConfig& config);  // throws ConfigError on invalid modes or ranks

  void set_cores(std::span<const Tensor> cores) { cores_.set(cores); }
  void take_traits(const Linear& dense);  // bias and trainability

  std::string_view kind() const override { return "tt_linear"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  // MACs are those of the two halves; the products of cores do not grow with the batch and are left out.
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  // Normal numbers of one variance for all cores, so that the composed weight has the variance 1 / (3 in) of a dense layer's
  // initial values. The bias is drawn as the dense layer's.
  void reset_parameters(std::uint64_t seed) override;

  Ranks ranks() const override { return tt_ranks(config_.ranks); }
  Tensor dense_weight() const override;  // [out, in]
  std::unique_ptr<Module> to_dense() const override;  // a Linear
  std::vector<TorchPart> torch_tensors() const override;

 private:
  Var half(std::span<const Var> cores, std::size_t first) const;
  Var right_first(const Var& x, std::span<const Var> cores) const;
  Var left_first(const Var& x, std::span<const Var> cores) const;
  Var composed(std::span<const Var> cores) const;
  Var run_way(std::size_t way, std::span<const Var> operands) const;

  TtLinearConfig config_;
  TtCores cores_;
  Parameter* bias_ = nullptr;
  TtHalves halves_;
  Execution execution_;
  // Keys for made_once(): what each execution derives from the cores.
  std::shared_ptr<const void> left_ = std::make_shared<int>(), right_ = std::make_shared<int>();
  std::shared_ptr<const void> turned_left_ = std::make_shared<int>(), turned_right_ = std::make_shared<int>();
  std::shared_ptr<const void> weight_ = std::make_shared<int>();
};

}  // namespace tessera
