// Turns gradients into new weights. State is held per parameter, under its dotted path, and allocated before the first step,
// so that a step allocates nothing. The learning rate is read by kernels from the step state, never from the config.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/step_state.h"
#include "core/nn/module.h"
#include "core/nn/state.h"

namespace tessera {

// What an update kernel reads and writes of one parameter; all contiguous. A kernel takes those of all parameters at once, on one
// device, and the step state, which holds lr.
struct UpdateOperands {
  Tensor weight;  // written in place
  Tensor grad;
  Tensor mask;  // u8, or undefined: where 0, weight and state become 0
  double weight_decay = 0;  // what holds for this parameter
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  virtual std::string_view name() const = 0;

  // One update of every trainable parameter that has a gradient. Gradients stay: the caller clears them. `norm`, an f64 scalar on
  // their device, becomes their norm, of the same bytes as clip_grad_norm() gives, unless it is undefined.
  void step(const StepState& step_state, const Tensor& norm = {});
  // The same of these parameters alone. A step may be made of several such updates, each of other parameters.
  void step(const StepState& step_state, const Tensor& norm, std::span<Parameter* const> of);

  // Tensors under "<parameter path>.<slot>", e.g. "fc.weight.momentum".
  State state() const;
  void load_state(const State& state);  // throws IoError on a missing, unexpected or mismatched tensor, or another optimiser's

 protected:
  using Slots = std::map<std::string, Tensor>;
  Optimizer() = default;
  // Called by the constructors of subclasses, once fresh_slots works.
  void bind(const std::vector<NamedParameter>& parameters);
  virtual Slots fresh_slots(const Parameter& parameter) const = 0;
  struct Update {
    const Parameter& parameter;
    UpdateOperands operands;  // but for weight_decay
    const Slots& slots;
  };
  virtual void update(std::span<const Update> updates, const Tensor& step_state, const Tensor& norm) = 0;  // at least one

 private:
  struct Entry {
    std::string path;
    Parameter* parameter;
    Slots slots;
  };
  void step_where(const std::function<bool(const Parameter&)>& taken, const StepState& step_state, const Tensor& norm);

  std::vector<Entry> entries_;
};

// The decay that holds for a parameter: normalisation parameters, biases and embeddings may be spared.
inline double decay_for(const Parameter& parameter, double weight_decay, bool decay_norm_bias) {
  return parameter.role() == ParameterRole::weight || decay_norm_bias ? weight_decay : 0.0;
}

}  // namespace tessera
