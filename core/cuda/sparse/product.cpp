#include "core/cuda/sparse/product.h"

#include <algorithm>
#include <limits>

#include "core/cuda/runtime/rounding.h"
#include "core/cuda/sparse/kernels.h"
#include "core/cuda/sparse/problem.h"

namespace tessera::cuda::sparse {
namespace {

using cpu::sparse::Window;

std::int64_t pixels_of(const Window& window) { return window.images * window.y.sources * window.x.sources; }

// [rows, channels] as a panel, zeros behind the rows.
Tensor turned(const Tensor& x, std::int64_t rows, std::int64_t channels, std::int64_t pitch) {
  const Tensor panel = Tensor::empty({channels, pitch}, x.dtype(), x.device());
  panel.slice(1, rows, pitch).fill(0);
  panel.slice(1, 0, rows).copy_from(x.reshape({rows, channels}).permute({1, 0}));
  return panel;
}

Tensor pixels_for(const Window& window, std::int64_t pitch, Device device) {
  if (window.is_pointwise()) return {};
  Tensor pixels = Tensor::empty({window.taps(), pitch}, DType::i32, device);
  find_pixels(window, pixels);
  return pixels;
}

// One pixel more than there are, which is zero.
Tensor source_panel(const Window& window, const Tensor& x) {
  const std::int64_t pixels = pixels_of(window);
  return turned(x, pixels, window.channels, round_up(pixels + 1, kPanelStep));
}

Tensor in_order(const Matrix& matrix, const Tensor& values) {
  if (!matrix.from.defined()) return values;
  const Tensor permuted = Tensor::empty_like(values);
  permute_values(values, matrix.from, permuted);
  return permuted;
}

}  // namespace

bool fits(const Window& window) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() - kPanelStep;
  return std::max(pixels_of(window), window.positions()) <= kMost;
}

void multiply(const Matrix& matrix, const Tensor& values, const Window& window, const Tensor& x, const Tensor& bias, bool relu,
              const Tensor& y) {
  const std::int64_t positions = window.positions();
  const std::int64_t pitch = round_up(positions, kPanelStep);
  const Tensor panel = Tensor::empty({matrix.rows, pitch}, y.dtype(), y.device());
  multiply_rows(matrix, in_order(matrix, values), {source_panel(window, x), panel, pixels_for(window, pitch, x.device())}, bias,
                relu);
  y.reshape({positions, matrix.rows}).copy_from(panel.slice(1, 0, positions).permute({1, 0}));
}

void gradient(const Matrix& matrix, const Window& window, const Tensor& x, const Tensor& grad_y, const Tensor& grad) {
  const std::int64_t positions = window.positions();
  if (positions == 0) return grad.fill(0);
  const std::int64_t pitch = round_up(positions, kPanelStep);
  sum_dots(matrix,
           {source_panel(window, x), turned(grad_y, positions, matrix.rows, pitch), pixels_for(window, pitch, x.device())}, grad);
}

}  // namespace tessera::cuda::sparse
