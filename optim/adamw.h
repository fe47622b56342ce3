// Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2), as torch.optim.AdamW:
//   w -= lr weight_decay w;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
//   w -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps).
#pragma once

#include "core/config/fields.h"
#include "optim/optimizer.h"

namespace tessera {

struct AdamWConfig {
  static constexpr const char* kName = "adamw";
  static constexpr bool kDecouplesDecay = true;
  double lr = 1e-3;  // what schedules start from
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  bool decay_norm_bias = true;  // false: normalisation parameters, biases and embeddings are not decayed
  void fields(Fields& f);
};

// Slots "exp_avg" and "exp_avg_sq", of the weight's shape and dtype, and "updates" [1] i64: t, counted per parameter on its
// device, since a parameter may join late. f32 and f64.
class AdamW final : public Optimizer {
 public:
  AdamW(const AdamWConfig& config, const std::vector<NamedParameter>& parameters);
  std::string_view name() const override { return AdamWConfig::kName; }

 protected:
  Slots fresh_slots(const Parameter& parameter) const override;
  void update(std::span<const Update> updates, const Tensor& step_state, const Tensor& norm) override;

 private:
  AdamWConfig config_;
};

struct AdamWRule {
  double beta1;
  double beta2;
  double eps;
};
struct AdamWOperands : UpdateOperands {
  Tensor exp_avg;
  Tensor exp_avg_sq;
  Tensor updates;
};

namespace cpu {
void adamw_update(std::span<const AdamWOperands> operands, const Tensor& step_state, const AdamWRule& rule, const Tensor& norm);
}  // namespace cpu
namespace cuda {
void adamw_update(std::span<const AdamWOperands> operands, const Tensor& step_state, const AdamWRule& rule, const Tensor& norm);
}  // namespace cuda

}  // namespace tessera
