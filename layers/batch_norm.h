// Batch normalisation over all but the last axis (Ioffe and Szegedy 2015). x [..., channels] -> y of the same shape.
#pragma once

#include <functional>
#include <optional>

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct BatchNormConfig {
  std::int64_t channels = 1;
  double momentum = 0.1;
  double eps = 1e-5;
  void fields(Fields& f);
};

// Parameters: weight [channels] (1), bias [channels] (0). Buffers: running_mean [channels] (0), running_var [channels] (1).
// In training the batch's statistics normalise, under SharedStatistics those of the batches of all ranks, and the buffers move by
// `momentum` towards them (the variance unbiased); in evaluation the buffers normalise and stay as they are, but for
// renew_statistics().
class BatchNorm final : public Module {
 public:
  using Config = BatchNormConfig;
  explicit BatchNorm(const BatchNormConfig& config);

  std::string_view kind() const override { return "batch_norm"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override { return normalize(x, {}, false, context); }
  // With what follows in the same op: relu(bn(x) + residual); the residual may be undefined.
  Var add_relu(const Var& x, const Var& residual, const Context& context);
  // What evaluation does: y = scale x + shift, f64 [channels] on the host.
  struct Map {
    Tensor scale, shift;
  };
  Map inference_map() const;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  void reset_parameters(std::uint64_t seed) override;

  const BatchNormConfig& options() const noexcept { return config_; }

 private:
  friend bool renew_statistics(Module& model, const std::function<void()>& evaluate);
  Var normalize(const Var& x, const Var& residual, bool relu, const Context& context);

  BatchNormConfig config_;
  Parameter& weight_;
  Parameter& bias_;
  Buffer& running_mean_;
  Buffer& running_var_;
  std::optional<std::int64_t> renewed_batches_;  // that the buffers are the mean of; empty outside renew_statistics()
};

// Gives the batch norms of `model` statistics of the weights that it has now: averaged weights have none of their own. `evaluate`
// runs the model in evaluation over some batches. Each batch is normalised by its own statistics, and the buffers become the mean
// of these over the batches. Returns whether there is a batch norm, and does nothing where there is none.
bool renew_statistics(Module& model, const std::function<void()>& evaluate);

// relu(norm(x) + residual), the residual may be undefined: one op where `norm` is a BatchNorm, else one after another.
Var norm_add_relu(Module& norm, const Var& x, const Var& residual, const Context& context);

}  // namespace tessera
