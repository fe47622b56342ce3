// N:M sparsity by a straight-through estimator that is refined by sparsity (SR-STE; Zhou et al., ICLR 2021). Weights W are
// trained dense, and every forward sees W~ = mask W, with the mask of these weights: the N largest |w| of each M inputs. The
// gradient at W~ is taken for that of all of W, and weights that the mask hides are pulled to 0, in the form of the optimiser's
// weight decay:
//   g = dL/dW~ + lambda (1 - mask) W;
// where weight decay is decoupled (AdamW), before the update and outside of the moments:
//   W -= lr lambda (1 - mask) W.
// At `freeze` the mask becomes the parameter's own, and stays. Until then it follows from the weights: resuming needs nothing
// else.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compress/patterns/n_m.h"
#include "compress/prune/config.h"
#include "compress/prune/targets.h"
#include "core/nn/hook.h"

namespace tessera {

class SrSte final : public Hook {
 public:
  static constexpr const char* kName = "prune";

  // `config` has `sr_ste`; `decoupled`: the pull leaves gradients alone. The model outlives the hook. Throws ConfigError with
  // what is wrong with the block for this model.
  SrSte(const PruneConfig& config, Module& model, const StageLength& stage, bool decoupled = false);

  std::string_view name() const override { return kName; }
  void on_stage_begin(Module& model) override;  // throws ConfigError where a weight has a mask already
  void on_step_begin(Module& model, std::int64_t step, StepStateData& data) override;  // W~ takes the place of W
  bool needs_gradients() const override { return true; }
  void after_backward(Module& model, const StepState& step) override;  // W comes back, with the pull
  std::int64_t interval() const override { return freeze_; }
  void between_steps(Module& model, std::int64_t steps_done) override;
  void on_stage_end(Module& model) override;
  void swap_evaluation_weights(Module& model) override;  // W~ of whatever weights are there, such as averages
  std::vector<Value> take_rows() override;  // {prune: {step, asked, sparsity}} where the masks freeze
  std::string summary() const override;

  // meta: N:M, and the weights that it hides elements of in every forward.
  State state() const override;
  void load_state(const State& state) override;

 private:
  struct Layer {
    PrunedWeight weight;
    Tensor dense;  // W, while W~ is in its place
    bool frozen() const { return weight.parameter->mask().defined(); }
  };

  std::vector<Layer> layers_;
  PruneConfig config_;
  NOfM n_m_;
  bool decoupled_;
  std::int64_t freeze_;  // after so many steps
  std::vector<Tensor> evaluated_;  // what swap_evaluation_weights() has taken from the model
  std::vector<Value> rows_;
};

// Brings a checkpoint's weights to what is evaluated, where this hook's state is saved beside them: those that the state names
// become W~. Throws IoError on a weight that is not there.
void hide_as_evaluated(const State& hook, std::map<std::string, Tensor>& weights);

// Kernels. All contiguous, of one shape and dtype, f32 or f64, elements a multiple of M.
struct SrSteOperands {
  Tensor weight;
  Tensor dense;
  Tensor gradient;
};
namespace cpu {
void sr_ste_hide(std::span<const SrSteOperands> operands, const NOfM& n_m);  // dense = weight; weight = mask weight
void sr_ste_pull(std::span<const SrSteOperands> operands, double lambda);  // gradient += lambda (dense - weight); weight = dense
// weight = dense - lr lambda (dense - weight) with the step's lr; dense where the step is skipped. Without gradients.
void sr_ste_pull_weights(std::span<const SrSteOperands> operands, const Tensor& step_state, double lambda);
}  // namespace cpu
namespace cuda {
void sr_ste_hide(std::span<const SrSteOperands> operands, const NOfM& n_m);
void sr_ste_pull(std::span<const SrSteOperands> operands, double lambda);
void sr_ste_pull_weights(std::span<const SrSteOperands> operands, const Tensor& step_state, double lambda);
}  // namespace cuda

}  // namespace tessera
