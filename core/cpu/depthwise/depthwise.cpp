#include "core/cpu/depthwise/depthwise.h"

#include <algorithm>

#include "core/cpu/depthwise/walk.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"

namespace tessera::cpu::depthwise {
namespace {

using reference::Conv2dGeometry;

constexpr std::int64_t kPieces = 16;  // pieces of a filter gradient's rows, so that threads get equal shares
constexpr std::int64_t kLine = 16;  // floats of a cache line
constexpr std::int64_t kLarge = std::int64_t{2} << 20;  // floats; a larger result is written past the caches

const Extent kOne{1, 1};

Window window_of(const Conv2dGeometry& g) {
  const auto& [stride, padding, dilation, groups] = g.options;
  return {{g.n, g.h, g.w}, {g.n, g.oh, g.ow}, g.in, {g.kh, g.kw}, stride, padding, dilation};
}

// The window of the gradient of x: at stride 1, a correlation of the gradient of y with the flipped filters, padded such that the
// result has x's size.
Window transposed(const Conv2dGeometry& g) {
  const auto& [stride, padding, dilation, groups] = g.options;
  return {{g.n, g.oh, g.ow}, {g.n, g.h, g.w}, g.in,
          {g.kh, g.kw},      stride,          {dilation.h * (g.kh - 1) - padding.h, dilation.w * (g.kw - 1) - padding.w},
          dilation};
}

Tensor packed(const Tensor& weight, bool turned) {
  const std::int64_t channels = weight.dim(0);
  const std::int64_t taps = weight.dim(1) * weight.dim(2);
  const Tensor to = Tensor::empty({taps, channels});
  const float* const from = weight.data<float>();
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    float* const row = to.data<float>() + (turned ? taps - 1 - tap : tap) * channels;
    for (std::int64_t c = 0; c < channels; ++c) row[c] = from[c * taps + tap];
  }
  return to;
}

// Channels of a strip: whole vectors for the kernels of 3x3 filters where those fit, and the rest, computed row by row.
struct Shares {
  Channels whole, rest;
};
Shares shares(const Kernels& kernels, const Window& w) {
  const std::int64_t whole = takes_3x3(w) ? w.channels / kernels.lanes * kernels.lanes : 0;
  return {{0, whole}, {whole, w.channels}};
}

// Whether the result exceeds the caches and is made of whole cache lines, which need not be read before they are written.
bool past_caches(const Window& w, const Tensor& to) {
  const bool whole_lines = w.channels % kLine == 0 && reinterpret_cast<std::uintptr_t>(to.raw()) % (kLine * sizeof(float)) == 0;
  return whole_lines && to.numel() > kLarge;
}

void correlate(const Kernels& kernels, const Conv2dGeometry& g, const Window& w, const Tensor& from, const Tensor& filters,
               Epilogue epilogue, const Tensor& to) {
  epilogue.past_caches = past_caches(w, to);
  const std::int64_t rows = w.to.n * w.to.h;
  const Shares all = shares(kernels, w);
  const Channels &whole = all.whole, &rest = all.rest;  // clang-14 captures no structured bindings
  const Tensor zeros = Tensor::zeros({w.channels});
  const float* const weights = filters.data<float>();
  parallel_parts(rows, threads_for(g.flops(), rows), [&](std::int64_t begin, std::int64_t end, int) {
    StripWalk walk(w, from.data<float>(), zeros.data<float>());
    walk.strips(begin, end, whole.last > 0 ? kernels.rows : 1, [&](const Strip& strip, std::int64_t row, std::int64_t count) {
      float* const y = to.data<float>() + row * strip.y_row;
      if (whole.last > 0) kernels.correlate3x3(strip, count, weights, epilogue, whole, y);
      if (rest.first == rest.last) return;
      for (std::int64_t r = 0; r < count; ++r) {
        kernels.correlate(walk.row(strip, r), walk.taps(), weights, epilogue, rest, y + r * strip.y_row);
      }
    });
  });
}

}  // namespace

bool suits(const Conv2dGeometry& g) { return g.options.groups > 1 && g.in == g.options.groups && g.out == g.in; }

const Kernels& kernels() { return isa() == Isa::avx512 ? kAvx512Kernels : kAvx2Kernels; }

Tensor filters(const Tensor& weight) { return packed(weight, false); }

Tensor input_grad_filters(const Conv2dGeometry& g, const Tensor& weight) { return packed(weight, g.options.stride == kOne); }

void forward(const Kernels& kernels, const Conv2dGeometry& g, const Tensor& x, const Tensor& filters, const Epilogue& epilogue,
             const Tensor& y) {
  correlate(kernels, g, window_of(g), x, filters, epilogue, y);
}

void backward_input(const Kernels& kernels, const Conv2dGeometry& g, const Tensor& grad_y, const Tensor& filters,
                    const Tensor& grad_x) {
  if (g.options.stride == kOne) return correlate(kernels, g, transposed(g), grad_y, filters, {}, grad_x);
  const Window w = window_of(g);
  const std::int64_t rows = g.n * g.h;
  const Tensor zeros = Tensor::zeros({g.in});
  const Epilogue epilogue{.past_caches = past_caches(w, grad_x)};
  parallel_parts(rows, threads_for(g.flops(), rows), [&](std::int64_t begin, std::int64_t end, int) {
    GatherWalk walk(w, grad_y.data<float>(), zeros.data<float>());
    walk.strips(begin, end, [&](const Strip& strip, const Taps& taps, std::int64_t pixel) {
      kernels.correlate(strip, taps, filters.data<float>(), epilogue, {0, g.in}, grad_x.data<float>() + pixel * g.in);
    });
  });
}

void backward_weight(const Kernels& kernels, const Conv2dGeometry& g, const Tensor& x, const Tensor& grad_y,
                     const Tensor& grad_weight) {
  const Window w = window_of(g);
  const std::int64_t rows = g.n * g.oh;
  const std::int64_t pieces = std::clamp<std::int64_t>(rows, 1, kPieces);
  const std::int64_t taps = g.kh * g.kw;
  const std::int64_t size = taps * g.in;
  const Shares all = shares(kernels, w);
  const Channels &whole = all.whole, &rest = all.rest;  // clang-14 captures no structured bindings
  const Tensor zeros = Tensor::zeros({g.in});
  const Tensor sums = Tensor::zeros({pieces, size});
  float* const total = sums.data<float>();
  parallel_parts(pieces, threads_for(g.flops(), pieces), [&](std::int64_t first, std::int64_t last, int) {
    StripWalk walk(w, x.data<float>(), zeros.data<float>());
    for (std::int64_t piece = first; piece < last; ++piece) {
      float* const sum = total + piece * size;
      const auto add = [&](const Strip& strip, std::int64_t row, std::int64_t count) {
        const float* const grad = grad_y.data<float>() + row * strip.y_row;
        if (whole.last > 0) kernels.add_filter_grad3x3(strip, count, grad, whole, sum);
        if (rest.first == rest.last) return;
        for (std::int64_t r = 0; r < count; ++r) {
          kernels.add_filter_grad(walk.row(strip, r), walk.taps(), grad + r * strip.y_row, rest, sum);
        }
      };
      walk.strips(rows * piece / pieces, rows * (piece + 1) / pieces, whole.last > 0 ? kernels.rows : 1, add);
    }
  });
  for (std::int64_t piece = 1; piece < pieces; ++piece) {
    for (std::int64_t i = 0; i < size; ++i) total[i] += total[piece * size + i];
  }
  float* const to = grad_weight.data<float>();
  for (std::int64_t c = 0; c < g.in; ++c) {
    for (std::int64_t tap = 0; tap < taps; ++tap) to[c * taps + tap] = total[tap * g.in + c];
  }
}

}  // namespace tessera::cpu::depthwise
