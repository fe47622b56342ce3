// What fill_uniform() and fill_normal() ask of a device's kernels; see core/rng.h.
#pragma once

#include "core/rng.h"

namespace tessera {

namespace cpu {
void draw_uniform(const Tensor& target, RngStream stream, double low, double high, std::uint64_t step);
void draw_normal(const Tensor& target, RngStream stream, double mean, double stddev, std::uint64_t step);
}  // namespace cpu
namespace cuda {
void draw_uniform(const Tensor& target, RngStream stream, double low, double high, std::uint64_t step);
void draw_normal(const Tensor& target, RngStream stream, double mean, double stddev, std::uint64_t step);
}  // namespace cuda

}  // namespace tessera
