// The training step: batch -> forward -> loss -> backward -> clip -> update -> hooks. Knows nothing of files or stages' order.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/backward.h"
#include "core/comm/communicator.h"
#include "core/device/step_state.h"
#include "core/nn/hook.h"
#include "core/nn/module.h"
#include "optim/optimizer.h"
#include "train/data/batch.h"
#include "train/experiment.h"
#include "train/run/early_updates.h"
#include "train/run/stage_hooks.h"
#include "train/run/step_exchange.h"
#include "train/run/step_graph.h"
#include "train/tasks/task.h"

namespace tessera {

class StageTrainer {
 public:
  // `model` and `task` must outlive the trainer, which computes on the model's device. `total_steps` is the stage's length, for
  // the schedule. `compute`: what activations are in. `others`: hooks beside those of the configuration, called after them.
  // `ranks`, which outlive the trainer, compute each step together: step() takes this rank's share of the batch, of as many
  // samples as the others'. All ranks come to the same bytes. Where a rank's micro-batch is its whole share, these are the bytes
  // of one process with that micro-batch, except for the statistics of batch norms: they are the means of the ranks' statistics
  // or, with sync_batch_norm, those of all ranks' micro-batches together. With several ranks the constructor is collective.
  StageTrainer(Module& model, const TrainingConfig& config, const Task& task, std::uint64_t seed, std::int64_t steps_per_epoch,
               std::int64_t total_steps, DType compute = DType::f32, std::span<const MakeHook> others = {},
               Communicator& ranks = one_process());

  // One optimiser step on one batch, which is on the model's device; micro-batches accumulate. Adds the batch's mean loss to the
  // running sum. On a GPU it does not wait, and it may be a replay, see StepGraph. Under a NumericCheck throws NumericError
  // naming the first op, or the first part of the step between ops, that made a NaN or Inf. A step that failed has dropped its
  // gradients; some weights may have been updated.
  void step(const Batch& batch, std::int64_t stage_step, std::int64_t global_step);

  // Steps are recorded by `recorder` in place of the device's own, or never without one; before the first step.
  void record_with(StepGraph::Recorder recorder) { graph_ = StepGraph(std::move(recorder)); }
  // Called with the weights in place that hooks want evaluated, before they are evaluated and at the stage's end: what belongs to
  // these weights, such as batch-norm statistics, is brought up to date.
  void before_evaluation(std::function<void()> renew) { renew_ = std::move(renew); }
  // Gives back the memory of a recorded step; later steps record anew.
  void forget_recording() { graph_.forget(); }

  // Mean loss since the last call; clears the sum. The only read of a device value in training.
  double take_mean_loss();
  double last_lr() const noexcept { return step_state_.host().lr; }

  // Throws NumericError naming the first parameter, buffer or optimiser value with a NaN or Inf, or saying that a loss or
  // gradient since the trainer was made held one. Losses and gradients are kept in sums of their own, because a mask may hide a
  // bad gradient from every weight. A gradient that overflows by the loss scale alone does not count; where no scale helps, the
  // error says so.
  void check_finite() const;

  // Calls `body` with the weights in place that hooks want evaluated, such as a moving average. A hook may change what those
  // before it have put there, so they take theirs back in the opposite order.
  template <class Body>
  void with_evaluation_weights(Body&& body) {
    for (const auto& hook : hooks_) hook->swap_evaluation_weights(model_);
    if (renew_) renew_();
    body();
    for (auto hook = hooks_.rbegin(); hook != hooks_.rend(); ++hook) (*hook)->swap_evaluation_weights(model_);
  }

  // Between steps. Calls `body` while the parameters hold the gradient of the batch's mean loss, the one that the stage trains
  // by. It comes from a training step's forward, in micro-batches, without what hooks add to gradients. The gradients are
  // dropped afterwards. Weights, optimiser, batch-norm statistics, the running sum and the loss's scale stay as they were.
  // Gradients that overflow in f16 are computed again at lower scales; `body` is not called where none helps.
  void with_gradients(const Batch& batch, const std::function<void()>& body);

  void begin_stage();  // tells the hooks, before the first step; instead of load_state()
  // Whether weights are updated in a step's last backward: without micro-batches their gradients are never all there.
  bool updates_early() const noexcept { return early_ != nullptr; }
  // What hooks have to do on the host after so many steps of the stage.
  void between_steps(std::int64_t steps_done);
  std::vector<Value> take_rows();  // of all hooks, since the last call
  double hook_seconds() const noexcept { return hook_seconds_; }  // that hooks have taken between steps, since they were made
  std::string hook_summary() const;  // ", "-separated; "" where no hook has one
  // The hooks' last word: a moving average becomes the model's weights. No step may follow, and no hook is left to save.
  void end_stage();

  // Before state(), on all ranks: brings to rank 0 what other ranks alone know.
  void gather_state();
  // Parts for the checkpoint: "optimizer", "trainer", one "hook.<name>" per hook, and "power_sgd" where the stage has that block.
  std::map<std::string, State> state() const;
  // The parts that every rank holds alike: the optimiser's, the hooks', loss scaling's and PowerSGD's factors.
  std::map<std::string, State> shared_state() const;
  void load_state(const std::map<std::string, State>& parts);

 private:
  void publish(std::int64_t stage_step, std::int64_t global_step);
  // Where a batch stands in its step.
  struct Portion {
    std::int64_t samples = 0;  // of the step, over all ranks
    std::int64_t first_micro = 0;  // index in the step of the batch's first micro-batch
    std::int64_t micro = 0;  // samples of a micro-batch at most
    LeafDone done = {};  // told of the gradients that are complete
  };
  Portion share_of_rank(const Batch& batch) const;
  Portion whole(const Batch& batch) const;
  LeafDone leaf_done() const;
  void exchange();  // with the other ranks
  void compute_step(const Batch& batch);  // all of a step that a graph may record
  void drop_gradients();
  bool may_overflow() const;  // gradients now, without being a fault
  void add_norm(const Tensor& norm) const;
  std::vector<const void*> memory() const;
  Context context() const;
  void check_device(const Batch& batch) const;
  Var loss(const Batch& batch, const Context& context) const;
  void accumulate_gradients(const Batch& batch, const Context& context, const Portion& portion);
  bool unscaled_gradients(const Batch& batch);
  void update_weights();
  void update_early(std::span<Parameter* const> some);

  Module& model_;
  TrainingConfig config_;
  const Task& task_;
  Communicator& ranks_;
  std::uint64_t seed_;
  DType compute_;
  bool scales_loss_;  // f16, see optim/loss_scale.h
  StageLength length_;
  std::vector<NamedParameter> parameters_;
  std::vector<NamedBuffer> buffers_;
  StepState step_state_;
  std::unique_ptr<Optimizer> optimizer_;
  StepSlots slots_;
  double hook_seconds_ = 0;
  std::vector<std::unique_ptr<Hook>> hooks_;  // in the order they were added, at every point
  Tensor loss_sum_;  // f64 scalar
  Tensor norm_sum_;  // of gradients over steps that were not skipped, f64 scalar: finite as long as every gradient was
  std::int64_t loss_count_ = 0;
  std::vector<Tensor> losses_;  // of a step's micro-batches, where others follow from other ranks
  std::unique_ptr<GradientExchange> exchange_;  // null in one process without power_sgd
  std::unique_ptr<EarlyUpdates> early_;  // null where gradients are needed behind backward
  StepGraph graph_;
  std::function<void()> renew_;
};

}  // namespace tessera
