// Gradients of a composed weight's factors.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "layers/compressed.h"
#include "tests/core/linalg/linalg_support.h"

namespace tessera::testing {

inline double product(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = values(a), y = values(b);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

// The weight is linear in each core: the gradient of a core, times any direction, is the composed weight's gradient times the
// weight with that direction in the core's place.
inline void expect_core_gradients(Module& layer, const Tensor& weight_grad) {
  const auto& compressed = *as_compressed(layer);
  for (const auto& parameter : layer.parameters()) {
    if (parameter->name() == "bias") continue;
    SCOPED_TRACE(parameter->name());
    const Tensor value = parameter->value().clone();
    const Tensor direction = random_tensor(value.shape(), DType::f32, 31);
    const double found = product(parameter->grad(), direction);
    parameter->set_value(direction);
    const double expected = product(weight_grad, compressed.dense_weight());
    parameter->set_value(value);
    EXPECT_NEAR(found, expected, 1e-4 * (std::abs(expected) + 1));
  }
}

}  // namespace tessera::testing
