// Scores to prune by, and what masks hold.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace tessera::testing {

using Bits = std::vector<std::uint8_t>;
using Masks = std::vector<Tensor>;

// Above 0, f32.
Tensor random_scores(const Shape& shape, std::uint64_t seed);
std::vector<Tensor> random_scores(const std::vector<Shape>& shapes, std::uint64_t seed);

std::int64_t size_of(std::span<const Tensor> tensors);
std::int64_t share(double density, std::int64_t total);  // rounded
std::int64_t ones(const Tensor& mask);
std::int64_t ones(const Masks& masks);
// Sum of the kept scores.
double score_of(const Tensor& scores, const Tensor& mask);
double score_of(const std::vector<Tensor>& scores, const Masks& masks);

}  // namespace tessera::testing
