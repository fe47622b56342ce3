// Something that takes part in training beside the optimiser, such as a moving average of the weights.
#pragma once

#include <string_view>

#include "core/nn/module.h"
#include "core/nn/state.h"

namespace tessera {

class Hook {
 public:
  virtual ~Hook() = default;
  virtual std::string_view name() const = 0;

  // Inside a step: no synchronisation with the device, no allocation outside the step's memory. On a GPU what after_backward and
  // after_step give the device is recorded in one step and replayed in those that follow, without a call of theirs: values that
  // change come from the step state.
  virtual void on_step_begin(Module&, StepStateData&) {}  // may set the values of the coming step
  virtual void after_backward(Module&, const StepState&) {}  // may edit gradients
  virtual void after_step(Module&, const StepState&) {}
  // Whether they have something to do on the host at every step: no step is recorded then.
  virtual bool acts_on_host() const { return false; }

  // Between steps.
  virtual void on_epoch_end(Module&) {}
  virtual void on_stage_end(Module&) {}

  // Pure, so that no hook can be left out of a checkpoint; a hook without state returns {}.
  virtual State state() const = 0;
  virtual void load_state(const State& state) = 0;
};

}  // namespace tessera
