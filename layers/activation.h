// Activations as modules, without parameters: y has x's shape but for swiglu's, which halves the last axis.
#pragma once

#include <string>

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

// The config of modules that have no settings.
struct EmptyConfig {
  void fields(Fields&) {}
};

class Activation : public Module {
 public:
  using Config = EmptyConfig;
  Value config() const override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
};

class Identity final : public Activation {  // x, in the place of a layer that was removed
 public:
  explicit Identity(const EmptyConfig& = {}) {}
  std::string_view kind() const override { return "identity"; }
  Var forward(const Var& x, const Context&) override { return x; }
};

class Relu final : public Activation {  // max(x, 0)
 public:
  explicit Relu(const EmptyConfig& = {}) {}
  std::string_view kind() const override { return "relu"; }
  Var forward(const Var& x, const Context& context) override;
};

class Silu final : public Activation {  // x sigmoid(x)
 public:
  explicit Silu(const EmptyConfig& = {}) {}
  std::string_view kind() const override { return "silu"; }
  Var forward(const Var& x, const Context& context) override;
};

class Swiglu final : public Activation {  // [..., 2n] -> [..., n]: silu of the first half, times the second (Shazeer, 2020)
 public:
  explicit Swiglu(const EmptyConfig& = {}) {}
  std::string_view kind() const override { return "swiglu"; }
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
};

class Sigmoid final : public Activation {  // 1 / (1 + exp(-x))
 public:
  explicit Sigmoid(const EmptyConfig& = {}) {}
  std::string_view kind() const override { return "sigmoid"; }
  Var forward(const Var& x, const Context& context) override;
};

class Tanh final : public Activation {
 public:
  explicit Tanh(const EmptyConfig& = {}) {}
  std::string_view kind() const override { return "tanh"; }
  Var forward(const Var& x, const Context& context) override;
};

struct GeluConfig {
  std::string form = "erf";  // erf: exact; tanh: Hendrycks and Gimpel's approximation
  void fields(Fields& f);
};

class Gelu final : public Activation {  // x Phi(x)
 public:
  using Config = GeluConfig;
  explicit Gelu(const GeluConfig& config = {}) : config_(config) {}
  std::string_view kind() const override { return "gelu"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;

 private:
  GeluConfig config_;
};

}  // namespace tessera
