#include "core/cpu/sparse/window.h"

namespace tessera::cpu::sparse {
namespace {

// The input row or column that a tap reads at an output's.
std::int64_t input_at(std::int64_t output, std::int64_t k, std::int64_t stride, std::int64_t padding, std::int64_t dilation,
                      std::int64_t size) {
  const std::int64_t at = output * stride - padding + k * dilation;
  return at < 0 || at >= size ? -1 : at;
}

// The output row or column to which a tap carries an input's.
std::int64_t output_at(std::int64_t input, std::int64_t k, std::int64_t stride, std::int64_t padding, std::int64_t dilation,
                       std::int64_t size) {
  const std::int64_t scaled = input + padding - k * dilation;
  if (scaled < 0 || scaled % stride != 0) return -1;
  return scaled / stride >= size ? -1 : scaled / stride;
}

}  // namespace

std::int64_t Window::row_at(std::int64_t image, std::int64_t y, std::int64_t x, std::int64_t ky, std::int64_t kx) const {
  const auto& [stride, padding, dilation, groups] = g_.options;
  const auto at = backwards() ? output_at : input_at;
  const std::int64_t height = backwards() ? g_.oh : g_.h;
  const std::int64_t width = backwards() ? g_.ow : g_.w;
  const std::int64_t from_y = at(y, ky, stride.h, padding.h, dilation.h, height);
  const std::int64_t from_x = at(x, kx, stride.w, padding.w, dilation.w, width);
  return from_y < 0 || from_x < 0 ? -1 : (image * height + from_y) * width + from_x;
}

void Window::rows(std::int64_t first, std::int64_t count, const float* image, const float* zeros, const float** rows) const {
  if (g_.is_pointwise()) {
    for (std::int64_t i = 0; i < count; ++i) rows[i] = image + (first + i) * channels();
    return;
  }
  const std::int64_t height = backwards() ? g_.h : g_.oh;
  const std::int64_t width = backwards() ? g_.w : g_.ow;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t position = first + i;
    const std::int64_t x = position % width, y = position / width % height, n = position / width / height;
    for (std::int64_t t = 0; t < taps(); ++t) {
      const std::int64_t row = row_at(n, y, x, t / g_.kw, t % g_.kw);
      rows[t * count + i] = row < 0 ? zeros : image + row * channels();
    }
  }
}

}  // namespace tessera::cpu::sparse
