// Filters between OHWI weights and the operands of the products.
// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include "core/cpu/winograd/problem.h"
#include "core/cpu/winograd/transforms.h"
#include "core/cpu/winograd/vectors.h"

namespace tessera::cpu::winograd {
namespace {

// u [position][in][padded out] of weight [out, 3, 3, in], for input channels [first, last).
template <int W>
void filters(const float* weight, std::int64_t in, std::int64_t out, std::int64_t first, std::int64_t last, float* u) {
  using V = Vec<W>;
  const std::int64_t width = padded<W>(out);
  for_each_vector<W>(out, [&](std::int64_t o, auto lanes) {
    for (std::int64_t c = first; c < last; ++c) {
      const auto read = [&](int i, int j) {
        const float* const from = weight + ((o * kFilter + i) * kFilter + j) * in + c;
        V v{};
        for (std::int64_t l = 0; l < lanes; ++l) v[l] = from[l * kFilter * kFilter * in];
        return v;
      };
      const auto one = [](const V(&g)[kFilter], V(&t)[kTile]) { transform_filter(g, t); };
      along_both<kFilter, kTile, V>(
          read, one, [&](int i, int j, const V& value) { store<W>(value, u + ((i * kTile + j) * in + c) * width + o, W); });
    }
  });
}

// u [position][out][padded in] of the filters turned by half a turn, which give the input's gradient from the output's; for
// output channels [first, last).
template <int W>
void turned_filters(const float* weight, std::int64_t in, std::int64_t out, std::int64_t first, std::int64_t last, float* u) {
  using V = Vec<W>;
  const std::int64_t width = padded<W>(in);
  for (std::int64_t o = first; o < last; ++o) {
    for_each_vector<W>(in, [&](std::int64_t c, auto lanes) {
      const auto read = [&](int i, int j) {
        return load<W>(weight + ((o * kFilter + kFilter - 1 - i) * kFilter + kFilter - 1 - j) * in + c, lanes);
      };
      const auto one = [](const V(&g)[kFilter], V(&t)[kTile]) { transform_filter(g, t); };
      along_both<kFilter, kTile, V>(
          read, one, [&](int i, int j, const V& value) { store<W>(value, u + ((i * kTile + j) * out + o) * width + c, W); });
    });
  }
}

// grad_weight [out, 3, 3, in] of u [position][padded in][padded out], for input channels [first, last).
template <int W>
void filter_grads(const float* u, std::int64_t in, std::int64_t out, std::int64_t first, std::int64_t last, float* grad_weight) {
  using V = Vec<W>;
  const std::int64_t depth = padded<W>(in);
  const std::int64_t width = padded<W>(out);
  for (std::int64_t c = first; c < last; ++c) {
    for_each_vector<W>(out, [&](std::int64_t k, auto lanes) {
      const auto read = [&](int i, int j) { return load<W>(u + ((i * kTile + j) * depth + c) * width + k, W); };
      const auto one = [](const V(&t)[kTile], V(&g)[kFilter]) { transform_filter_grad(t, g); };
      along_both<kTile, kFilter, V>(read, one, [&](int i, int j, const V& value) {
        float* const to = grad_weight + ((k * kFilter + i) * kFilter + j) * in + c;
        for (std::int64_t l = 0; l < lanes; ++l) to[l * kFilter * kFilter * in] = value[l];
      });
    });
  }
}

}  // namespace
}  // namespace tessera::cpu::winograd
