// Gradients against central differences in f64.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/autograd/var.h"

namespace tessera::testing {

struct GradientCheckOptions {
  std::vector<bool> differentiable = {};  // per input; empty = every floating input
  double step = 1e-5;
  double tolerance = 1e-6;  // on |analytic - numeric| / max(1, |numeric|): truncation ~ step^2, rounding ~ 1e-16 / step
  std::uint64_t seed = 1;
};

// Compares the gradients of sum(w * f(inputs)), w random: a plain sum would prove nothing for a softmax. Every element of inputs
// of up to 64 elements, three random directions of larger ones. Inputs are f64 (others are passed on as constants).
// Returns "" when all agree, else the first difference. f must be a function of its inputs alone.
std::string check_gradients(const std::function<Var(std::span<const Var>)>& f, std::span<const Tensor> inputs,
                            const GradientCheckOptions& options = {});

// The random weights w, of y's shape, dtype and device, and the gradients of sum(w * f(inputs)): one per differentiable input.
Tensor projection(const Tensor& y, std::uint64_t seed);
std::vector<Tensor> projected_gradients(const std::function<Var(std::span<const Var>)>& f, std::span<const Tensor> inputs,
                                        const std::vector<bool>& differentiable, std::uint64_t seed);

}  // namespace tessera::testing
