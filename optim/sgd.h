// Stochastic gradient descent with momentum, as torch.optim.SGD:
//   g = grad + weight_decay w;  m = momentum m + g;  w -= lr (nesterov ? g + momentum m : m).
#pragma once

#include "core/config/fields.h"
#include "optim/optimizer.h"

namespace tessera {

struct SgdConfig {
  static constexpr const char* kName = "sgd";
  static constexpr bool kDecouplesDecay = false;
  double lr = 0.1;  // what schedules start from
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  bool decay_norm_bias = true;  // false: normalisation parameters, biases and embeddings are not decayed
  void fields(Fields& f);
};

// Slot "momentum", of the weight's shape and dtype, unless momentum is 0. f32 and f64.
class Sgd final : public Optimizer {
 public:
  Sgd(const SgdConfig& config, const std::vector<NamedParameter>& parameters);
  std::string_view name() const override { return SgdConfig::kName; }

 protected:
  Slots fresh_slots(const Parameter& parameter) const override;
  void update(std::span<const Update> updates, const Tensor& step_state, const Tensor& norm) override;

 private:
  SgdConfig config_;
};

struct SgdRule {
  double momentum;
  bool nesterov;
};
struct SgdOperands : UpdateOperands {
  Tensor momentum;  // undefined when the rule's is 0
};

namespace cpu {
void sgd_update(std::span<const SgdOperands> operands, const Tensor& step_state, const SgdRule& rule, const Tensor& norm);
}  // namespace cpu
namespace cuda {
void sgd_update(std::span<const SgdOperands> operands, const Tensor& step_state, const SgdRule& rule, const Tensor& norm);
}  // namespace cuda

}  // namespace tessera
