#include "core/cuda/sparse/product.h"

#include <algorithm>
#include <limits>

#include "core/cuda/sparse/kernels.h"
#include "core/cuda/sparse/problem.h"
#include "core/support/rounding.h"

namespace tessera::cuda::sparse {
namespace {

using cpu::sparse::Window;

// For a gradient: the number of subwarps wanted on any GPU, and the least steps of positions for one of them. Neither depends on
// the chip, so that all chips give the same bytes.
constexpr std::int64_t kWantedSubwarps = 16384;
constexpr std::int64_t kLeastSteps = 8;

std::int64_t pixels_of(const Window& window) { return window.images * window.y.sources * window.x.sources; }

// x [rows, channels] as a panel [channels, pitch], with zeros after the rows.
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

// Has at least one pixel of zeros after the last pixel, for positions that read no pixel.
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

void multiply(const Matrix& matrix, Walk walk, const Tensor& values, const Window& window, const Tensor& x, const Tensor& bias,
              bool relu, const Tensor& y) {
  const std::int64_t positions = window.positions();
  const std::int64_t pitch = round_up(positions, kPanelStep);
  const Panels panels{source_panel(window, x), Tensor::empty({matrix.rows, pitch}, y.dtype(), y.device()),
                      pixels_for(window, pitch, x.device())};
  const Tensor weights = in_order(matrix, values);
  if (walk == Walk::pieces) multiply_pieces(matrix, weights, panels, bias, relu);
  multiply_rows(matrix, walk == Walk::pieces ? matrix.alone : matrix.all, weights, panels, bias, relu);
  y.reshape({positions, matrix.rows}).copy_from(panels.y.slice(1, 0, positions).permute({1, 0}));
}

void gradient(const Matrix& matrix, Walk walk, const Window& window, const Tensor& x, const Tensor& grad_y, const Tensor& grad) {
  const std::int64_t positions = window.positions();
  if (positions == 0) return grad.fill(0);
  if (matrix.count == 0) return;
  const std::int64_t pitch = round_up(positions, kPanelStep);
  const Panels panels{source_panel(window, x), turned(grad_y, positions, matrix.rows, pitch),
                      pixels_for(window, pitch, x.device())};
  const Matrix::Rows& rows = walk == Walk::pieces ? matrix.alone : matrix.all;
  const std::int64_t tasks = rows.chunks.dim(0) + (walk == Walk::pieces ? matrix.tiles.dim(0) * kSubwarps : 0);
  const std::int64_t steps = pitch / kPanelStep;
  const std::int64_t wanted = std::min(ceil_div(kWantedSubwarps, tasks), ceil_div(steps, kLeastSteps));
  const std::int64_t steps_of_split = ceil_div(steps, wanted);
  const std::int64_t splits = ceil_div(steps, steps_of_split);
  const Tensor sums =
      splits == 1 ? grad.reshape({1, matrix.count}) : Tensor::empty({splits, matrix.count}, grad.dtype(), grad.device());
  sum_dots(matrix, rows, panels, steps_of_split, sums);
  if (walk == Walk::pieces) sum_pieces(matrix, panels, steps_of_split, sums);
  if (splits > 1) sum_splits(sums, grad);
}

}  // namespace tessera::cuda::sparse
