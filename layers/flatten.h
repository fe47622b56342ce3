// x [n, ...] -> y [n, product of the rest], in memory order. Images are NHWC, so that features run over h, then w, then c:
// a linear layer trained behind PyTorch's NCHW flatten needs its columns permuted from CHW to HWC.
#pragma once

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct FlattenConfig {
  void fields(Fields&) {}
};

class Flatten final : public Module {
 public:
  using Config = FlattenConfig;
  explicit Flatten(const FlattenConfig& = {}) {}
  std::string_view kind() const override { return "flatten"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
};

}  // namespace tessera
