// Sparse training whose mask moves (RigL; Evci et al., ICML 2020): at every `every` steps t before `end`, T, each weight drops
// the share f = fraction / 2 (1 + cos(pi t / T)) of the elements that it keeps, those of least |w|, and keeps as many others,
// those of largest |g|, with the gradient g of that step before masks. How many elements a weight keeps stays. New elements
// begin at 0, and so do their entries in the optimiser's state and in averages, because a mask holds all of these at 0. The
// masks are the parameters' own: resuming needs nothing else, and they outlive the stage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compress/prune/targets.h"
#include "core/config/duration.h"
#include "core/config/fields.h"
#include "core/nn/hook.h"

namespace tessera {

// The `rigl` block of a stage.
struct RiglConfig {
  std::optional<Value> layers;  // as of prune
  double sparsity = 0;  // 0 where the file has to say it
  std::string scope = "erk";
  Duration every = Duration::steps(100);
  Duration end = Duration::percent(75);
  double fraction = 0.3;
  void fields(Fields& f);
};

class Rigl final : public Hook {
 public:
  static constexpr const char* kName = "rigl";

  // `seed` draws the masks of weights that have none. The model outlives the hook. Throws ConfigError with what is wrong with the
  // block for this model.
  Rigl(const RiglConfig& config, Module& model, const StageLength& stage, std::uint64_t seed);

  std::string_view name() const override { return kName; }
  void on_stage_begin(Module& model) override;
  void on_step_begin(Module& model, std::int64_t step, StepStateData& data) override;
  bool needs_gradients() const override { return true; }
  void after_backward(Module& model, const StepState& step) override;  // keeps the gradients; masks still hide nothing of them
  std::int64_t interval() const override { return every_; }
  void between_steps(Module& model, std::int64_t steps_done) override;
  void on_stage_end(Module& model) override;
  std::vector<Value> take_rows() override;  // {rigl: {step, fraction, moved}}: elements that were not kept before
  std::string summary() const override;
  State state() const override { return {}; }
  void load_state(const State& state) override;  // throws IoError where a weight has no mask

 private:
  bool updates_after(std::int64_t steps) const { return steps > 0 && steps < end_ && steps % every_ == 0; }

  RiglConfig config_;
  std::uint64_t seed_;
  std::int64_t every_, end_;  // in steps
  std::vector<PrunedWeight> weights_;
  std::vector<Tensor> gradients_;  // of the step before an update; on a GPU of every step, because steps may be replayed
  bool due_ = false;  // an update after this step
  std::vector<Value> rows_;
};

// The mask after an update that moves up to `count` elements; u8 on the CPU. Throws NumericError on NaN.
Tensor moved_mask(const PrunedWeight& weight, const Tensor& gradient, std::int64_t count);

// Random masks of the block's sparsity for weights that have none. A weight that the block does not fit is left alone.
void draw_masks(const RiglConfig& config, Module& model, std::uint64_t seed);

// What is wrong with the block for this network, and for a stage of this length.
std::vector<BlockProblem> rigl_problems(const RiglConfig& config, Module& model);
std::vector<BlockProblem> rigl_problems(const RiglConfig& config, const StageLength& stage);

}  // namespace tessera
