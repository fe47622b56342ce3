// Scores and masks of weights as patterns go through them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/tensor.h"

namespace tessera {

inline std::span<const float> elements(const Tensor& scores) {
  return {scores.data<float>(), static_cast<std::size_t>(scores.numel())};
}

inline std::span<std::uint8_t> bits(const Tensor& mask) {
  return {mask.data<std::uint8_t>(), static_cast<std::size_t>(mask.numel())};
}

// A weight [out, in] or [out, kh, kw, in] as a matrix: outputs by positions, which are the inputs of each tap.
struct WeightMatrix {
  std::int64_t outputs = 0, taps = 1, inputs = 0;
  std::int64_t positions() const { return taps * inputs; }
};

inline WeightMatrix matrix_of(const Shape& weight) {
  WeightMatrix matrix{.outputs = weight[0], .taps = 1, .inputs = weight[weight.rank() - 1]};
  for (int i = 1; i + 1 < weight.rank(); ++i) matrix.taps *= weight[i];
  return matrix;
}

}  // namespace tessera
