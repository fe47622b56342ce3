// A convolution whose weight keeps some elements, by kernels that skip the others where the clock chose that
// (core/ops/sparse_product.h). x [n, h, w, in] -> y [n, oh, ow, out], with oh and ow of the dense convolution's.
#pragma once

#include <memory>

#include "core/config/fields.h"
#include "layers/compressed.h"
#include "layers/conv2d.h"
#include "layers/convolution.h"
#include "layers/sparse_parts.h"

namespace tessera {

struct SparseConv2dConfig {
  Conv2dConfig conv;  // of one group
  std::int64_t kept = 1;
  void fields(Fields& f);
};

// Parameters: values [kept], bias [out]. Buffer: mask, a bit for each element of [out, kh, kw, in].
// Initial values: elements drawn uniformly, with the dense layer's values.
class SparseConv2d final : public Convolution, public CompressedLayer {
 public:
  using Config = SparseConv2dConfig;
  explicit SparseConv2d(const SparseConv2dConfig& config);  // throws ConfigError on groups and on an invalid number of elements

  // The sparse layer with the dense one's values, mask, bias and trainability. The dense one has a mask and one group.
  static std::unique_ptr<SparseConv2d> of(const Conv2d& dense);

  std::string_view kind() const override { return "sparse_conv2d"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  std::unique_ptr<Module> scaled(const Tensor& scale, const Tensor& shift) const override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  void reset_parameters(std::uint64_t seed) override;
  void buffers_changed() override { parts_.changed(); }

  Ranks ranks() const override { return {{"kept", config_.kept}}; }
  bool is_sparse() const override { return true; }
  Tensor dense_weight() const override { return parts_.dense(); }
  std::unique_ptr<Module> to_dense() const override;  // a Conv2d whose weight has the mask
  std::vector<TorchPart> torch_tensors() const override { return {}; }
  std::int64_t left_out() const override { return parts_.left_out(); }
  std::string structure() const override { return parts_.structure(); }

 private:
  Var forward_relu(const Var& x, const Var& residual, const Context& context) override;
  Var bias() const { return bias_ != nullptr ? bias_->var() : Var(); }

  SparseConv2dConfig config_;
  SparseParts parts_;
  Parameter* bias_;  // null without a bias
};

}  // namespace tessera
