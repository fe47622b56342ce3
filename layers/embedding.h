// Rows of a table for whole numbers: tokens. x i64 [...] -> y [..., width], in the dtype that the context computes in.
#pragma once

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct EmbeddingConfig {
  std::int64_t vocabulary = 1;
  std::int64_t width = 1;
  void fields(Fields& f);
};

// Parameter: weight [vocabulary, width], N(0, 0.02^2). A TiedLinear may read it too (layers/tied_linear.h).
class Embedding final : public Module {
 public:
  using Config = EmbeddingConfig;
  explicit Embedding(const EmbeddingConfig& config);

  std::string_view kind() const override { return "embedding"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;  // throws DTypeError unless x is i64
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  void reset_parameters(std::uint64_t seed) override;
  std::int64_t input_limit() const override { return config_.vocabulary; }

  const Parameter& weight() const noexcept { return weight_; }

 private:
  EmbeddingConfig config_;
  Parameter& weight_;
};

}  // namespace tessera
