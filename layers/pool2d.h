// Pooling over windows of an image. x [n, h, w, c] -> y [n, oh, ow, c], oh = (h + 2 padding - kernel) / stride + 1.
#pragma once

#include <optional>

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct Pool2dConfig {
  Extent kernel{2, 2};
  std::optional<Extent> stride = {};  // the kernel when absent
  Extent padding{0, 0};
  void fields(Fields& f);
};

class MaxPool2d final : public Module {  // padding never wins
 public:
  using Config = Pool2dConfig;
  explicit MaxPool2d(const Pool2dConfig& config) : config_(config) {}
  std::string_view kind() const override { return "max_pool2d"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;

 private:
  Pool2dConfig config_;
};

class AvgPool2d final : public Module {  // padding does not count in the mean
 public:
  using Config = Pool2dConfig;
  explicit AvgPool2d(const Pool2dConfig& config) : config_(config) {}
  std::string_view kind() const override { return "avg_pool2d"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;

 private:
  Pool2dConfig config_;
};

struct GlobalAvgPoolConfig {
  void fields(Fields&) {}
};

// x [n, h, w, c] -> y [n, c]: the mean over the image, any size.
class GlobalAvgPool final : public Module {
 public:
  using Config = GlobalAvgPoolConfig;
  explicit GlobalAvgPool(const GlobalAvgPoolConfig& = {}) {}
  std::string_view kind() const override { return "global_avg_pool"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
};

}  // namespace tessera
