// Convolution as plain loops with double accumulators: the f64 path, and the fallback of the f32 path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/cpu/parallel.h"
#include "core/conv2d_geometry.h"

namespace tessera::cpu::reference {

using tessera::Conv2dGeometry;

template <class T>
void conv2d_forward(const Conv2dGeometry& g, const T* x, const T* weight, const T* bias, T* y) {
  parallel_for(g.n * g.oh, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t ox = 0; ox < g.ow; ++ox) {
        T* const pixel = y + (row * g.ow + ox) * g.out;
        for (std::int64_t o = 0; o < g.out; ++o) {
          double sum = bias ? static_cast<double>(bias[o]) : 0.0;
          g.for_each_tap(row / g.oh, row % g.oh, ox, [&](std::int64_t ky, std::int64_t kx, std::int64_t at) {
            const T* const source = x + at + g.first_channel(o);
            const T* const w = weight + g.weight_at(o, ky, kx);
            for (std::int64_t c = 0; c < g.group_in(); ++c) sum += static_cast<double>(source[c]) * static_cast<double>(w[c]);
          });
          pixel[o] = static_cast<T>(sum);
        }
      }
    }
  });
}

// Scatters per image, so that no two threads write one element.
template <class T>
void conv2d_backward_input(const Conv2dGeometry& g, const T* grad_y, const T* weight, T* grad_x) {
  parallel_for(g.n, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> sum(static_cast<std::size_t>(g.h * g.w * g.in));
    for (std::int64_t image = begin; image < end; ++image) {
      std::fill(sum.begin(), sum.end(), 0.0);
      const std::int64_t start = image * g.h * g.w * g.in;
      for (std::int64_t oy = 0; oy < g.oh; ++oy) {
        for (std::int64_t ox = 0; ox < g.ow; ++ox) {
          const T* const pixel = grad_y + g.y_at(image, oy, ox);
          g.for_each_tap(image, oy, ox, [&](std::int64_t ky, std::int64_t kx, std::int64_t at) {
            for (std::int64_t o = 0; o < g.out; ++o) {
              double* const target = sum.data() + (at - start) + g.first_channel(o);
              const T* const w = weight + g.weight_at(o, ky, kx);
              for (std::int64_t c = 0; c < g.group_in(); ++c)
                target[c] += static_cast<double>(pixel[o]) * static_cast<double>(w[c]);
            }
          });
        }
      }
      std::transform(sum.begin(), sum.end(), grad_x + start, [](double value) { return static_cast<T>(value); });
    }
  });
}

// Each thread owns whole output channels. grad_bias may be null.
template <class T>
void conv2d_backward_weight(const Conv2dGeometry& g, const T* x, const T* grad_y, T* grad_weight, T* grad_bias) {
  parallel_for(g.out, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> sum(static_cast<std::size_t>(g.kh * g.kw * g.group_in()));
    for (std::int64_t o = begin; o < end; ++o) {
      std::fill(sum.begin(), sum.end(), 0.0);
      double bias = 0;
      for (std::int64_t position = 0; position < g.n * g.oh * g.ow; ++position) {
        const double gradient = static_cast<double>(grad_y[position * g.out + o]);
        const std::int64_t row = position / g.ow;
        bias += gradient;
        g.for_each_tap(row / g.oh, row % g.oh, position % g.ow, [&](std::int64_t ky, std::int64_t kx, std::int64_t at) {
          const T* const source = x + at + g.first_channel(o);
          double* const target = sum.data() + g.weight_at(0, ky, kx);
          for (std::int64_t c = 0; c < g.group_in(); ++c) target[c] += gradient * static_cast<double>(source[c]);
        });
      }
      std::transform(sum.begin(), sum.end(), grad_weight + g.weight_at(o, 0, 0), [](double v) { return static_cast<T>(v); });
      if (grad_bias) grad_bias[o] = static_cast<T>(bias);
    }
  });
}

}  // namespace tessera::cpu::reference
