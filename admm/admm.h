// ADMM: training under a constraint W in C, C the weights that a form holds at given ranks (Boyd et al. 2011; for factored
// convolutions Yin et al., CVPR 2021). Beside each constrained weight W stand its copy in C, Z, and the scaled dual variable U,
// both of its shape and dtype. Every step's gradient gets rho (W - Z + U), and every `update`
//   Z <- P(W + U),  U <- U + W - Z.
// At the stage's begin Z = P(W) and U = 0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "admm/config.h"
#include "admm/constraint.h"
#include "admm/residuals.h"
#include "core/comm/communicator.h"
#include "core/nn/hook.h"

namespace tessera {

class Admm final : public Hook {
 public:
  static constexpr const char* kName = "admm";

  // Z and U are zero until the stage begins or a state is loaded. The model outlives the hook. `ranks`, which train
  // the stage and outlive the hook, share out the projections. Throws InternalError where a layer has no weight.
  Admm(const AdmmConfig& config, std::vector<ConstrainedLayer> layers, Module& model, const StageLength& stage, StepSlots& slots,
       Communicator& ranks = one_process());

  std::string_view name() const override { return kName; }
  void on_stage_begin(Module& model) override;
  void on_step_begin(Module& model, std::int64_t step, StepStateData& data) override;  // sets rho's slot
  bool needs_gradients() const override { return true; }
  void after_backward(Module& model, const StepState& step) override;
  std::int64_t interval() const override { return interval_; }
  void between_steps(Module& model, std::int64_t steps_done) override;
  void on_stage_end(Module& model) override;  // warns of weights that have not come to their copies
  std::vector<Value> take_rows() override;  // {admm: {step, rho, primal, dual, relative, layer}} for each update
  std::string summary() const override;

  // Tensors "z.<layer>" and "u.<layer>"; meta: rho, what the file asked for, whether updates have stopped or stalled, and the
  // history of residuals. Where the file asks for another rho than it did when the state was saved, rho is scaled by new / old,
  // U by old / new, and stopped updates begin again.
  State state() const override;
  void load_state(const State& state) override;  // throws IoError on a missing, unexpected or mismatched tensor

  double rho() const noexcept { return rho_; }
  const std::vector<Residuals>& history() const noexcept { return history_; }
  bool stopped() const noexcept { return stopped_; }

 private:
  struct Layer {
    ConstrainedLayer constrained;
    Parameter* weight;  // of the model
    Tensor z, u;
  };

  std::vector<Tensor> projected() const;  // of W + U
  Residuals update(std::int64_t steps_done);
  void judge();  // the newest update; may stop all further ones
  void change_rho();  // as schedule or balance ask
  void set_rho(double rho);  // and scales U so that rho U stays

  AdmmConfig config_;
  StageLength stage_;
  std::vector<Layer> layers_;
  std::int64_t interval_;
  std::size_t slot_;
  double rho_;
  bool stopped_ = false;
  bool stalled_ = false;  // at some update
  std::vector<Residuals> history_;
  std::vector<Residuals> rows_;
  Communicator& ranks_;
};

// gradient += rho (weight - z + u), of one layer, with rho in the step state's `slot`. Contiguous, of one shape and dtype, f32 or
// f64.
struct AdmmOperands {
  Tensor gradient;
  Tensor weight;
  Tensor z;
  Tensor u;
};
namespace cpu {
void admm_pull(std::span<const AdmmOperands> operands, std::size_t slot, const Tensor& step_state);
}
namespace cuda {
void admm_pull(std::span<const AdmmOperands> operands, std::size_t slot, const Tensor& step_state);
}

}  // namespace tessera
