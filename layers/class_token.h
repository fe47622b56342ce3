// What vision transformers read their answer from (Dosovitskiy et al., 2021): a learned position in front of the others
// (ClassToken), and one row for each sequence at the end (TokenPool).
#pragma once

#include <string>

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct ClassTokenConfig {
  std::int64_t width = 1;
  void fields(Fields& f);
};

// x [n, t, width] -> y [n, 1 + t, width]. Parameter: weight [1, width], N(0, 0.02^2).
class ClassToken final : public Module {
 public:
  using Config = ClassTokenConfig;
  explicit ClassToken(const ClassTokenConfig& config);

  std::string_view kind() const override { return "class_token"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  void reset_parameters(std::uint64_t seed) override;

 private:
  ClassTokenConfig config_;
  Parameter& weight_;
};

struct TokenPoolConfig {
  std::string pool = "first";
  void fields(Fields& f);
};

// x [n, t, width] -> y [n, width]: the first position, or the mean of all.
class TokenPool final : public Module {
 public:
  using Config = TokenPoolConfig;
  explicit TokenPool(const TokenPoolConfig& config) : config_(config) {}

  std::string_view kind() const override { return "token_pool"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;

 private:
  TokenPoolConfig config_;
};

}  // namespace tessera
