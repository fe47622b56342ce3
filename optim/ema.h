// Exponential moving average of a model (Polyak averaging): after every step average = d average + (1 - d) value, for each
// parameter and floating-point buffer, with d read by the kernel from the step state. After step t of a stage, counted from 0, d
// is min(decay, (1 + t) / (10 + t)) with warm-up, so that the weights that the stage began with are soon forgotten. Swap the
// averages in to evaluate them; whoever evaluates them gives batch norms statistics of the averaged weights
// (layers/batch_norm.h).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "core/nn/hook.h"

namespace tessera {

struct EmaConfig {
  double decay = 0.999;
  bool warmup = true;
  std::int64_t statistics = 50;
  void fields(Fields& f);
};

class Ema final : public Hook {
 public:
  static constexpr const char* kName = "ema";

  Ema(const EmaConfig& config, Module& model, StepSlots& slots);  // averages start at the model's values

  std::string_view name() const override { return kName; }
  void on_step_begin(Module& model, std::int64_t step, StepStateData& data) override;  // sets the decay's slot
  void after_step(Module& model, const StepState& step) override;
  void on_stage_end(Module& model) override;  // the averages become the model's weights
  void swap_evaluation_weights(Module& model) override { swap(model); }

  // Tensors under the parameter's or buffer's path. Throw InternalError while swapped in.
  State state() const override;
  void load_state(const State& state) override;  // throws IoError on a missing, unexpected or mismatched tensor

  // Exchanges the model's values and the averages, after putting the present masks on the averages; a second call restores both.
  // Between steps only; drops gradients.
  void swap(Module& model);
  bool swapped() const noexcept { return swapped_; }

 private:
  void hold_masks(Module& model);

  EmaConfig config_;
  std::size_t slot_;
  std::map<std::string, Tensor> averages_;
  bool swapped_ = false;
};

// One parameter or buffer, f32 or f64. Where the mask (u8, may be undefined) is 0 the average becomes 0. All contiguous.
struct EmaOperands {
  Tensor average;
  Tensor value;
  Tensor mask;
};
// `slot`: of the step state, where the decay stands.
namespace cpu {
void ema_update(std::span<const EmaOperands> operands, std::size_t slot, const Tensor& step_state);
}
namespace cuda {
void ema_update(std::span<const EmaOperands> operands, std::size_t slot, const Tensor& step_state);
}

}  // namespace tessera
