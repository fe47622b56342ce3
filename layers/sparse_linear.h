// A linear layer whose weight keeps some elements: y = x weight^T + bias, by kernels that skip the others where the clock chose
// that (core/ops/sparse_product.h). x [..., in] -> y [..., out].
#pragma once

#include <memory>

#include "core/config/fields.h"
#include "layers/compressed.h"
#include "layers/linear.h"
#include "layers/sparse_parts.h"

namespace tessera {

struct SparseLinearConfig {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t kept = 1;
  bool bias = true;
  void fields(Fields& f);
};

// Parameters: values [kept], bias [out]. Buffer: mask, a bit for each element of [out, in].
// Initial values: elements drawn uniformly, with the dense layer's values.
class SparseLinear final : public Module, public CompressedLayer {
 public:
  using Config = SparseLinearConfig;
  explicit SparseLinear(const SparseLinearConfig& config);  // throws ConfigError on an invalid number of elements

  // The sparse layer with the dense one's values, mask, bias and trainability. The dense one has a mask.
  static std::unique_ptr<SparseLinear> of(const Linear& dense);

  std::string_view kind() const override { return "sparse_linear"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  void reset_parameters(std::uint64_t seed) override;
  void buffers_changed() override { parts_.changed(); }

  Ranks ranks() const override { return {{"kept", config_.kept}}; }
  bool is_sparse() const override { return true; }
  Tensor dense_weight() const override { return parts_.dense(); }
  std::unique_ptr<Module> to_dense() const override;  // a Linear whose weight has the mask
  std::vector<TorchPart> torch_tensors() const override { return {}; }
  std::int64_t left_out() const override { return parts_.left_out(); }
  std::string structure() const override { return parts_.structure(); }

 private:
  SparseLinearConfig config_;
  SparseParts parts_;
  Parameter* bias_;  // null without a bias
};

}  // namespace tessera
