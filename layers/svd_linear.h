// A linear layer whose weight is the product of two factors (layers/svd_factors.h): y = (x in_factor^T) out_factor^T + bias, or
// x (out_factor in_factor)^T + bias where the clock chose that (layers/execution.h). x [..., in] -> y [..., out].
#pragma once

#include <memory>

#include "core/config/fields.h"
#include "layers/compressed.h"
#include "layers/execution.h"
#include "layers/linear.h"
#include "layers/svd_factors.h"

namespace tessera {

struct SvdLinearConfig {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t rank = 1;
  bool bias = true;
  void fields(Fields& f);
};

// Parameters: in_factor [rank, in], out_factor [out, rank], bias [out].
// Initial values: in_factor has variance 1 / in, out_factor 1 / (3 rank), so that the product has the variance 1 / (3 in) of a
// dense layer's and the narrow activations that of x; all uniform. The bias is drawn as the dense layer's.
class SvdLinear final : public Module, public CompressedLayer {
 public:
  using Config = SvdLinearConfig;
  explicit SvdLinear(const SvdLinearConfig& config);  // throws ConfigError on an invalid rank

  // The layer without its values: factors are zeros, bias and trainability are the dense layer's.
  static std::unique_ptr<SvdLinear> shaped_for(const Linear& dense, std::int64_t rank);
  void set_factors(const SvdFactors& factors);

  std::string_view kind() const override { return "svd_linear"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  void reset_parameters(std::uint64_t seed) override;

  Ranks ranks() const override { return {{"rank", config_.rank}}; }
  Tensor dense_weight() const override;  // [out, in]
  std::unique_ptr<Module> to_dense() const override;  // a Linear
  std::vector<TorchPart> torch_tensors() const override;

 private:
  Var run_way(std::size_t way, std::span<const Var> operands, const Var& bias) const;

  SvdLinearConfig config_;
  Parameter& in_factor_;
  Parameter& out_factor_;
  Parameter* bias_;  // null without a bias
  Execution execution_;
  std::shared_ptr<const void> weight_ = std::make_shared<int>();  // of made_once()
};

}  // namespace tessera
