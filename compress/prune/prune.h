// Gradual pruning: masks of weights that are made anew at some steps of a stage, each with fewer elements than before, until the
// target is met. Between prunings masked weights are zero: the optimiser holds them there (Optimizer), averages too (Ema), and
// masked gradients do not count in clipping. What was pruned stays pruned. The masks are the parameters' own: they outlive the
// stage.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compress/patterns/pattern.h"
#include "compress/prune/config.h"
#include "compress/prune/loss_gradients.h"
#include "compress/prune/schedule.h"
#include "compress/prune/targets.h"
#include "core/nn/hook.h"

namespace tessera {

class Prune final : public Hook {
 public:
  static constexpr const char* kName = "prune";

  // What scores are made of; `gradients` may be empty where nothing is pruned.
  struct Sources {
    std::uint64_t seed = 0;
    LossGradients gradients = {};
  };
  // The model outlives the hook. Throws ConfigError with all that is wrong with the block for this model.
  Prune(const PruneConfig& config, Module& model, const StageLength& stage, Sources sources);

  std::string_view name() const override { return kName; }
  void on_stage_begin(Module& model) override;
  std::int64_t interval() const override { return 1; }
  void between_steps(Module& model, std::int64_t steps_done) override;
  void on_stage_end(Module& model) override;
  std::vector<Value> take_rows() override;  // {prune: {step, asked, sparsity}} for each pruning
  std::string summary() const override;  // "sparsity 0.53"

  State state() const override;  // meta: sparsities at the stage's begin
  void load_state(const State& state) override;

  double sparsity() const;  // of the weights that it prunes, together

 private:
  std::vector<double> initial_sparsities() const;
  void prune(std::int64_t step);

  PruneConfig config_;
  StageLength stage_;
  Sources sources_;
  std::vector<PrunedWeight> weights_;
  std::vector<std::int64_t> steps_;
  std::vector<double> initial_;  // sparsity at the stage's begin: each weight's own in scope `layer`, else that of all of them
  std::vector<Value> rows_;
};

// Sets masks of the block's target, by the weights as they are; by magnitude where the score needs gradients. A weight that the
// block does not fit is left alone.
void prune_to_target(const PruneConfig& config, Module& model);

// What is wrong with the block for a stage of this length.
std::vector<BlockProblem> schedule_problems(const PruneConfig& config, const StageLength& stage);

// What is wrong with the block for the masks that its weights have when the stage begins: sr_ste trains dense weights. With
// scope `layer` some weight has to have more elements than its target leaves; with `global` and `erk` all weights together. None
// where it fits no weight (pruned_weights() says that).
std::vector<BlockProblem> mask_problems(const PruneConfig& config, Module& model);

}  // namespace tessera
