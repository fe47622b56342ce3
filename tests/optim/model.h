// A model of a few parameters and a buffer, and values to put into them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/rng.h"
#include "optim/ema.h"
#include "tests/support/holder.h"

namespace tessera::testing {

inline Tensor random_tensor(const Shape& shape, DType dtype, std::uint64_t seed) {
  const Tensor x = Tensor::empty(shape, dtype);
  fill_normal(x, RngStream(seed, "test", "values"), 0, 1);
  return x;
}

// conv.weight [3, 5], conv.bias [3], norm.weight [7].
inline std::unique_ptr<Holder> make_model(DType dtype = DType::f32) {
  auto model = std::make_unique<Holder>();
  auto& conv = static_cast<Holder&>(model->add_child("conv", std::make_unique<Holder>()));
  conv.add_parameter("weight", random_tensor({3, 5}, dtype, 1));
  conv.add_parameter("bias", random_tensor({3}, dtype, 2), ParameterRole::bias);
  auto& norm = static_cast<Holder&>(model->add_child("norm", std::make_unique<Holder>()));
  norm.add_parameter("weight", random_tensor({7}, dtype, 3), ParameterRole::norm);
  norm.add_buffer("running_mean", random_tensor({7}, dtype, 4));
  return model;
}

// Fresh gradients, a function of the step alone.
inline void set_gradients(Module& model, std::uint64_t step) {
  std::uint64_t seed = 100 * step + 100;
  for (const NamedParameter& named : named_parameters(model)) {
    named.parameter->set_grad(random_tensor(named.parameter->value().shape(), named.parameter->value().dtype(), seed++));
  }
}

// Without warm-up; its decay stands in slot 0 of the step state.
inline Ema make_ema(double decay, Module& model) {
  StepSlots slots;
  return Ema({.decay = decay, .warmup = false}, model, slots);
}

inline StepState step_state(double lr, double ema_decay = 0) {
  StepState state;
  state.set({.lr = lr, .slots = {ema_decay}});
  return state;
}

inline std::vector<double> to_doubles(const Tensor& tensor) { return tensor.to(DType::f64).to_vector<double>(); }

}  // namespace tessera::testing
