// Something that takes part in training beside the optimiser, such as a moving average of the weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/step_state.h"
#include "core/nn/module.h"
#include "core/nn/state.h"

namespace tessera {

// Which of StepStateData::slots belongs to which value of a hook. Made by the trainer, one for all of its hooks.
class StepSlots {
 public:
  // The next free slot, for a value of this name. Throws InternalError when the name is taken or no slot is left.
  std::size_t add(std::string_view name);

 private:
  std::vector<std::string> names_;
};

class Hook {
 public:
  virtual ~Hook() = default;
  virtual std::string_view name() const = 0;  // "ema": of its block in an experiment file, and of its part of a checkpoint

  virtual void on_stage_begin(Module&) {}  // before its first step; not where a stage goes on from a checkpoint

  // Inside a step: no synchronisation with the device, no allocation outside the step's memory. On a GPU what loss,
  // after_backward and after_step give the device is recorded in one step and replayed in those that follow, without calling
  // these functions: values that change have to come from the step state.
  virtual void on_step_begin(Module&, std::int64_t, StepStateData&) {}  // the stage's step, from 0; may set its slots
  // The loss of a micro-batch: `value` is what there is so far, the scores are what the network says of the first of `parts`. It
  // is differentiated.
  virtual Var loss(const Var& value, const Var& /*scores*/, std::span<const NamedTensor> /*parts*/) { return value; }
  // Whether after_backward is called. Where it is, weights are not updated before that call; where not, they may be updated
  // while backward goes on.
  virtual bool needs_gradients() const { return false; }
  virtual void after_backward(Module&, const StepState&) {}  // once a step, after unscaling, before clipping; may edit gradients
  virtual void after_step(Module&, const StepState&) {}
  // Whether the hook has something to do on the host at every step: no step is recorded then.
  virtual bool acts_on_host() const { return false; }

  // Between steps, on the host: after every interval() steps of the stage, with the number of steps done; 0 = never.
  virtual std::int64_t interval() const { return 0; }
  virtual void between_steps(Module&, std::int64_t) {}
  virtual void on_stage_end(Module&) {}  // no step follows, and the hook's state is saved no more
  // Lines for metrics.jsonl, each a map of what happened since the last call; asked for between steps.
  virtual std::vector<Value> take_rows() { return {}; }
  // For the line that an epoch ends with: "|W - Z| 0.012, rho 0.001"; "" = nothing.
  virtual std::string summary() const { return {}; }
  // Puts the weights that evaluation takes in the place of the model's, and at the second call the model's back.
  virtual void swap_evaluation_weights(Module&) {}

  // Pure, so that no hook can be left out of a checkpoint; a hook without state returns {}.
  virtual State state() const = 0;
  virtual void load_state(const State& state) = 0;
};

}  // namespace tessera
