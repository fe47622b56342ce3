#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

#include "core/compute_type.h"
#include "core/cpu/parallel.h"
#include "core/ops/pool2d.h"

namespace tessera::cpu {
namespace {

// The pixels of one axis that a window covers.
struct Span {
  std::int64_t begin;
  std::int64_t end;
};

Span covered(std::int64_t index, std::int64_t stride, std::int64_t padding, std::int64_t kernel, std::int64_t size) {
  const std::int64_t start = index * stride - padding;
  return {std::max<std::int64_t>(start, 0), std::min(start + kernel, size)};
}

struct Window {
  Span rows;
  Span columns;
  std::int64_t pixels() const { return (rows.end - rows.begin) * (columns.end - columns.begin); }

  // Calls visit(iy * w + ix) in row-major order.
  template <class Visit>
  void for_each_pixel(std::int64_t w, Visit&& visit) const {
    for (std::int64_t iy = rows.begin; iy < rows.end; ++iy) {
      for (std::int64_t ix = columns.begin; ix < columns.end; ++ix) visit(iy * w + ix);
    }
  }
};

Window window_at(const Tensor& x, std::int64_t oy, std::int64_t ox, const Pool2dOptions& o) {
  return {covered(oy, o.stride.h, o.padding.h, o.kernel.h, x.dim(1)), covered(ox, o.stride.w, o.padding.w, o.kernel.w, x.dim(2))};
}

// Calls body(image, position of the output pixel in y, its window, part) for all output pixels, rows in parallel.
template <class Body>
void for_each_window(const Tensor& x, const Tensor& y, const Pool2dOptions& options, Body&& body) {
  const std::int64_t height = y.dim(1);
  const std::int64_t width = y.dim(2);
  const std::int64_t work = std::max<std::int64_t>(1, width * x.dim(3) * options.kernel.h * options.kernel.w);
  const int parts = parts_for(x.dim(0) * height, std::max<std::int64_t>(1, kGrain / work));
  parallel_parts(x.dim(0) * height, parts, [&](std::int64_t begin, std::int64_t end, int part) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t ox = 0; ox < width; ++ox) {
        body(row / height, row * width + ox, window_at(x, row % height, ox, options), part);
      }
    }
  });
}

// `count` sums of type C for each part, on separate cache lines. Memory plans compare histories of allocations: the sums are
// therefore allocated before threads begin, for the largest possible number of parts, whatever the batch is.
template <class C>
class SumsOfParts {
 public:
  explicit SumsOfParts(std::int64_t count)
      : room_(Tensor::empty({parts_for(std::numeric_limits<std::int64_t>::max(), 1), (count + kLine - 1) / kLine * kLine},
                            dtype_of<C>)) {}
  C* of(int part) const { return room_.data<C>() + part * room_.dim(1); }

 private:
  static constexpr std::int64_t kLine = 64 / sizeof(C);
  Tensor room_;
};

// Sums that become elements of T. If T is computed in itself, they are kept in place, else in a buffer until store() rounds them.
template <class T>
class Sums {
 public:
  explicit Sums(std::int64_t count) {
    if constexpr (!kInPlace) wide_.emplace(count);
  }

  // Returns zeroed sums for `count` elements at `target`.
  Compute<T>* begin(T* target, std::int64_t count, int part) const {
    Compute<T>* sums = nullptr;
    if constexpr (kInPlace) sums = target;
    else sums = wide_->of(part);
    std::fill_n(sums, count, Compute<T>(0));
    return sums;
  }
  void store(T* target, std::int64_t count, int part) const {
    if constexpr (!kInPlace) std::transform(wide_->of(part), wide_->of(part) + count, target, narrow<T, Compute<T>>);
  }

 private:
  static constexpr bool kInPlace = std::is_same_v<T, Compute<T>>;
  std::optional<SumsOfParts<Compute<T>>> wide_;
};

template <class T>
void max_forward(const Tensor& x, const Tensor& y, const Tensor& argmax, const Pool2dOptions& options) {
  const std::int64_t channels = x.dim(3);
  const std::int64_t image_size = x.dim(1) * x.dim(2) * channels;
  for_each_window(x, y, options, [&](std::int64_t image, std::int64_t position, const Window& window, int) {
    T* const best = y.data<T>() + position * channels;
    std::int32_t* const where = argmax.data<std::int32_t>() + position * channels;
    const T* const pixels = x.data<T>() + image * image_size;
    const std::int64_t first = window.rows.begin * x.dim(2) + window.columns.begin;
    std::copy_n(pixels + first * channels, channels, best);
    std::fill_n(where, channels, static_cast<std::int32_t>(first));
    window.for_each_pixel(x.dim(2), [&](std::int64_t pixel) {
      const T* const candidate = pixels + pixel * channels;
      const auto index = static_cast<std::int32_t>(pixel);
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) {
        const Compute<T> value = widen(candidate[c]);
        const bool wins = (value > widen(best[c])) | (value != value);
        best[c] = wins ? candidate[c] : best[c];
        where[c] = wins ? index : where[c];
      }
    });
  });
}

// One thread scatters an image, so that no two threads write the same element.
template <class T>
void max_backward(const Tensor& grad_y, const Tensor& argmax, const Tensor& grad_x) {
  const std::int64_t channels = grad_x.dim(3);
  const std::int64_t image_size = grad_x.dim(1) * grad_x.dim(2) * channels;
  const std::int64_t outputs = grad_y.dim(1) * grad_y.dim(2) * channels;
  const int parts = parts_for(grad_x.dim(0), 1);
  const Sums<T> sums(image_size);
  parallel_parts(grad_x.dim(0), parts, [&](std::int64_t begin, std::int64_t end, int part) {
    for (std::int64_t image = begin; image < end; ++image) {
      T* const target = grad_x.data<T>() + image * image_size;
      const T* const g = grad_y.data<T>() + image * outputs;
      const std::int32_t* const where = argmax.data<std::int32_t>() + image * outputs;
      Compute<T>* const sum = sums.begin(target, image_size, part);
      for (std::int64_t at = 0; at < outputs; at += channels) {
        for (std::int64_t c = 0; c < channels; ++c) sum[where[at + c] * channels + c] += widen(g[at + c]);
      }
      sums.store(target, image_size, part);
    }
  });
}

template <class T>
void avg_forward(const Tensor& x, const Tensor& y, const Pool2dOptions& options) {
  const std::int64_t channels = x.dim(3);
  const std::int64_t image_size = x.dim(1) * x.dim(2) * channels;
  const Sums<T> sums(channels);
  for_each_window(x, y, options, [&](std::int64_t image, std::int64_t position, const Window& window, int part) {
    T* const target = y.data<T>() + position * channels;
    const T* const pixels = x.data<T>() + image * image_size;
    if (window.pixels() == 1) {  // one pixel: y is a subsample of x
      std::copy_n(pixels + (window.rows.begin * x.dim(2) + window.columns.begin) * channels, channels, target);
      return;
    }
    Compute<T>* const sum = sums.begin(target, channels, part);
    window.for_each_pixel(x.dim(2), [&](std::int64_t pixel) {
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) sum[c] += widen(pixels[pixel * channels + c]);
    });
    const auto share = Compute<T>(1) / static_cast<Compute<T>>(window.pixels());
    for (std::int64_t c = 0; c < channels; ++c) sum[c] *= share;
    sums.store(target, channels, part);
  });
}

template <class T>
void avg_backward(const Tensor& grad_y, const Tensor& grad_x, const Pool2dOptions& options) {
  const std::int64_t channels = grad_x.dim(3);
  const std::int64_t image_size = grad_x.dim(1) * grad_x.dim(2) * channels;
  const std::int64_t width = grad_y.dim(2);
  const std::int64_t positions = grad_y.dim(1) * width;
  const int parts = parts_for(grad_x.dim(0), 1);
  const Sums<T> sums(image_size);
  parallel_parts(grad_x.dim(0), parts, [&](std::int64_t begin, std::int64_t end, int part) {
    for (std::int64_t image = begin; image < end; ++image) {
      T* const target = grad_x.data<T>() + image * image_size;
      Compute<T>* const sum = sums.begin(target, image_size, part);
      for (std::int64_t at = 0; at < positions; ++at) {
        const T* const g = grad_y.data<T>() + (image * positions + at) * channels;
        const Window window = window_at(grad_x, at / width, at % width, options);
        const auto share = Compute<T>(1) / static_cast<Compute<T>>(window.pixels());
        window.for_each_pixel(grad_x.dim(2), [&](std::int64_t pixel) {
#pragma omp simd
          for (std::int64_t c = 0; c < channels; ++c) sum[pixel * channels + c] += widen(g[c]) * share;
        });
      }
      sums.store(target, image_size, part);
    }
  });
}

template <class T>
void global_forward(const Tensor& x, const Tensor& y) {
  const std::int64_t channels = x.dim(3);
  const std::int64_t pixels = x.dim(1) * x.dim(2);
  const int parts = parts_for(x.dim(0), std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, pixels * channels)));
  const SumsOfParts<double> sums(channels);
  parallel_parts(x.dim(0), parts, [&](std::int64_t begin, std::int64_t end, int part) {
    double* const sum = sums.of(part);
    for (std::int64_t image = begin; image < end; ++image) {
      std::fill_n(sum, channels, 0.0);
      for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
        const T* const from = x.data<T>() + (image * pixels + pixel) * channels;
        for (std::int64_t c = 0; c < channels; ++c) sum[c] += static_cast<double>(widen(from[c]));
      }
      std::transform(sum, sum + channels, y.data<T>() + image * channels,
                     [&](double total) { return narrow<T>(total / static_cast<double>(pixels)); });
    }
  });
}

template <class T>
void global_backward(const Tensor& grad_y, const Tensor& grad_x) {
  const std::int64_t channels = grad_x.dim(3);
  const std::int64_t pixels = grad_x.dim(1) * grad_x.dim(2);
  const auto share = Compute<T>(1) / static_cast<Compute<T>>(pixels);
  parallel_for(grad_x.dim(0) * pixels, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, channels)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t pixel = begin; pixel < end; ++pixel) {
                   const T* const g = grad_y.data<T>() + pixel / pixels * channels;
                   T* const target = grad_x.data<T>() + pixel * channels;
                   for (std::int64_t c = 0; c < channels; ++c) target[c] = narrow<T>(widen(g[c]) * share);
                 }
               });
}

}  // namespace

void max_pool2d_forward(const Tensor& x, const Tensor& y, const Tensor& argmax, const Pool2dOptions& options) {
  dispatch_floating(x.dtype(), "max_pool2d", [&]<class T>() { max_forward<T>(x, y, argmax, options); });
}
void max_pool2d_backward(const Tensor& grad_y, const Tensor& argmax, const Tensor& grad_x, const Pool2dOptions&) {
  dispatch_floating(grad_x.dtype(), "max_pool2d", [&]<class T>() { max_backward<T>(grad_y, argmax, grad_x); });
}
void avg_pool2d_forward(const Tensor& x, const Tensor& y, const Pool2dOptions& options) {
  dispatch_floating(x.dtype(), "avg_pool2d", [&]<class T>() { avg_forward<T>(x, y, options); });
}
void avg_pool2d_backward(const Tensor& grad_y, const Tensor& grad_x, const Pool2dOptions& options) {
  dispatch_floating(grad_x.dtype(), "avg_pool2d", [&]<class T>() { avg_backward<T>(grad_y, grad_x, options); });
}
void global_avg_pool_forward(const Tensor& x, const Tensor& y) {
  dispatch_floating(x.dtype(), "global_avg_pool", [&]<class T>() { global_forward<T>(x, y); });
}
void global_avg_pool_backward(const Tensor& grad_y, const Tensor& grad_x) {
  dispatch_floating(grad_x.dtype(), "global_avg_pool", [&]<class T>() { global_backward<T>(grad_y, grad_x); });
}

}  // namespace tessera::cpu
