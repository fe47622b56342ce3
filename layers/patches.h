// An image as a sequence of its patches (Dosovitskiy et al., 2021, section 3.1): a convolution whose stride is its kernel makes a
// position of each. x [n, h, w, c] -> y [n, oh ow, width], from left to right, then down.
#pragma once

#include <memory>

#include "layers/activation.h"

namespace tessera {

// Child: "conv". Built as a shell: it comes from make_patches or a checkpoint's tree.
class Patches final : public Module {
 public:
  using Config = EmptyConfig;
  explicit Patches(const EmptyConfig& = {}) {}

  std::string_view kind() const override { return "patches"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  std::vector<std::string> needed_children() const override { return {"conv"}; }
};

// Patches have `side` by `side` pixels. Weights are drawn from N(0, deviation^2), biases are 0.
std::unique_ptr<Patches> make_patches(std::int64_t channels, std::int64_t width, std::int64_t side, double deviation);

}  // namespace tessera
