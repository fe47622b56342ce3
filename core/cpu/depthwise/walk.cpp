#include "core/cpu/depthwise/walk.h"

#include <algorithm>

namespace tessera::cpu::depthwise {
namespace {

constexpr std::int64_t kNear = std::int64_t{1} << 19;  // floats that the threads' second-level caches hold

// Points `to` at columns [first, first + count) of a row of `width` columns. A null row belongs to the border.
void point(const float* row, std::int64_t width, std::int64_t channels, std::int64_t first, std::int64_t count,
           const float* zeros, const float** to) {
  const std::int64_t begin = row == nullptr ? count : std::clamp<std::int64_t>(-first, 0, count);
  const std::int64_t end = row == nullptr ? count : std::clamp<std::int64_t>(width - first, begin, count);
  std::fill(to, to + begin, zeros);
  for (std::int64_t i = begin; i < end; ++i) to[i] = row + (first + i) * channels;
  std::fill(to + end, to + count, zeros);
}

const float* row_of(const float* data, const Images& images, std::int64_t channels, std::int64_t image, std::int64_t y) {
  return y < 0 || y >= images.h ? nullptr : data + (image * images.h + y) * images.w * channels;
}

}  // namespace

bool takes_3x3(const Window& w) {
  const Extent one{1, 1}, two{2, 2};
  return w.kernel == Extent{3, 3} && w.dilation == one && (w.stride == one || w.stride == two);
}

StripWalk::StripWalk(const Window& window, const float* from, const float* zeros) : window_(window), from_(from), zeros_(zeros) {
  const auto& [images, to, channels, kernel, stride, padding, dilation] = window_;
  const std::int64_t pitch = (to.w - 1) * stride.w + (kernel.w - 1) * dilation.w + 1;
  for (std::int64_t i = 0; i < kernel.h; ++i) {
    for (std::int64_t j = 0; j < kernel.w; ++j) taps_.push_back({i * pitch + j * dilation.w, i * kernel.w + j});
  }
  strip_ = {nullptr, pitch, stride.w, to.w, channels, to.w * channels, channels, 0};
}

const Strip& StripWalk::strip_at(std::int64_t row, std::int64_t count) {
  const std::int64_t image = row / window_.to.h;
  const std::int64_t top = row % window_.to.h * window_.stride.h - window_.padding.h;
  const std::int64_t high = (count - 1) * window_.stride.h + window_.kernel.h;
  pixels_.resize(static_cast<std::size_t>(high * strip_.pitch));
  for (std::int64_t i = 0; i < high; ++i) {
    const float* const at = row_of(from_, window_.from, window_.channels, image, top + i * window_.dilation.h);
    point(at, window_.from.w, window_.channels, -window_.padding.w, strip_.pitch, zeros_, pixels_.data() + i * strip_.pitch);
  }
  strip_.pixels = pixels_.data();
  const std::int64_t below = window_.from.w * window_.channels;
  strip_.ahead = window_.from.n * window_.from.h * below > kNear ? count * window_.stride.h * below : 0;
  return strip_;
}

GatherWalk::GatherWalk(const Window& window, const float* outputs, const float* zeros)
    : window_(window), outputs_(outputs), zeros_(zeros) {
  const std::int64_t stride = window.stride.w;
  const std::int64_t width = window.from.w;
  for (std::int64_t first = 0; first < std::min(stride, width); ++first) {
    Phase& phase = phases_.emplace_back(Phase{first, (width - first + stride - 1) / stride, 0, 0, {}});
    std::int64_t right = 0;
    for (std::int64_t j = 0; j < window.kernel.w; ++j) {
      const std::int64_t place = first + window.padding.w - j * window.dilation.w;
      if (place % stride != 0) continue;
      const std::int64_t output = place / stride;
      phase.left = phase.meetings.empty() ? output : std::min(phase.left, output);
      right = phase.meetings.empty() ? output : std::max(right, output);
      phase.meetings.push_back({j, output});
    }
    phase.columns = right - phase.left + phase.count;
  }
  strip_ = {nullptr, 0, 1, 0, stride * window.channels, width * window.channels, window.channels, 0};
}

void GatherWalk::find_rows(std::int64_t row) {
  image_ = row / window_.from.h;
  rows_.clear();
  for (std::int64_t i = 0; i < window_.kernel.h; ++i) {
    const std::int64_t place = row % window_.from.h + window_.padding.h - i * window_.dilation.h;
    if (place % window_.stride.h != 0) continue;
    const std::int64_t output = place / window_.stride.h;
    if (output >= 0 && output < window_.to.h) rows_.push_back({i, output});
  }
}

const Strip& GatherWalk::strip_of(const Phase& phase) {
  taps_.clear();
  pixels_.resize(rows_.size() * static_cast<std::size_t>(phase.columns));
  std::int64_t at = 0;
  for (const Meeting& row : rows_) {
    point(row_of(outputs_, window_.to, window_.channels, image_, row.output), window_.to.w, window_.channels, phase.left,
          phase.columns, zeros_, pixels_.data() + at);
    for (const Meeting& column : phase.meetings) {
      taps_.push_back({at + column.output - phase.left, row.tap * window_.kernel.w + column.tap});
    }
    at += phase.columns;
  }
  strip_.pixels = pixels_.data();
  strip_.pitch = phase.columns;
  strip_.count = phase.count;
  return strip_;
}

}  // namespace tessera::cpu::depthwise
