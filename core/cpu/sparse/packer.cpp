#include "core/cpu/sparse/packer.h"

#include <algorithm>

namespace tessera::cpu::sparse {
namespace {

std::int64_t whole_vectors(std::int64_t floats) { return (floats + kSpill) / (kSpill + 1) * (kSpill + 1); }

}  // namespace

Packer::Packer(const Kernels& kernels, const Window& window, const float* image, std::int64_t pitch)
    : kernels_(kernels), window_(window), image_(image), pitch_(pitch) {
  zeros_.assign(static_cast<std::size_t>(window.channels), 0.0F);
  pixels_.resize(static_cast<std::size_t>(pitch));
  if (window.is_pointwise() || !window.slides()) return;
  left_ = -(window.x.first + window.x.lowest());
  const std::int64_t width = (window.x.results - 1) * window.x.step + window.x.reach() + 1;
  phase_length_ = (width + window.x.step - 1) / window.x.step;
  row_pitch_ = whole_vectors(phase_length_ * window.x.step);
  pixels_.resize(static_cast<std::size_t>(std::max(pitch, row_pitch_)));
  const std::int64_t row_floats = window.channels * row_pitch_;
  // Rows of the result that a panel touches, rows that their taps reach, and image rows in between that no tap reaches.
  const std::int64_t touched = (pitch - 1) / window.x.results + 2;
  const std::int64_t apart = window.y.sources + window.y.reach();
  const std::int64_t slots = touched * window.y.step + window.y.reach() + 1 + (touched / window.y.results + 1) * apart;
  held_.assign(static_cast<std::size_t>(std::min(slots, window.images * window.y.sources)), -1);
  ring_.resize(held_.size() * static_cast<std::size_t>(row_floats) + kSpill);
  zero_row_.assign(static_cast<std::size_t>(row_floats) + kSpill, 0.0F);
}

void Packer::pack(std::int64_t first, std::int64_t count, float* to) {
  if (window_.is_pointwise()) {
    for (std::int64_t i = 0; i < count; ++i) pixels_[i] = image_ + (first + i) * window_.channels;
    kernels_.pack(pixels_.data(), count, window_.channels, to, pitch_);
  } else if (window_.slides()) {
    pack_sliding(first, count, to);
  } else {
    pack_pixels(first, count, to);
  }
}

std::vector<Packer::Run> Packer::runs(std::int64_t first, std::int64_t count) const {
  std::vector<Run> all;
  for (std::int64_t at = first; at < first + count;) {
    const std::int64_t x = at % window_.x.results, row = at / window_.x.results;
    const std::int64_t length = std::min(window_.x.results - x, first + count - at);
    all.push_back({row / window_.y.results, row % window_.y.results, x, length});
    at += length;
  }
  return all;
}

void Packer::pack_pixels(std::int64_t first, std::int64_t count, float* to) {
  const std::vector<Run> all = runs(first, count);
  for (std::int64_t t = 0; t < window_.taps(); ++t) {
    std::size_t next = 0;
    for (const Run& run : all) {
      const std::int64_t row = window_.y.source_at(run.y, t / window_.x.taps);
      for (std::int64_t i = 0; i < run.length; ++i) {
        const std::int64_t column = window_.x.source_at(run.x + i, t % window_.x.taps);
        const std::int64_t pixel = (run.image * window_.y.sources + row) * window_.x.sources + column;
        pixels_[next++] = row < 0 || column < 0 ? zeros_.data() : image_ + pixel * window_.channels;
      }
    }
    kernels_.pack(pixels_.data(), count, window_.channels, to + t * window_.channels * pitch_, pitch_);
  }
}

const float* Packer::transposed_row(std::int64_t image, std::int64_t row) {
  if (row < 0) return zero_row_.data();
  const std::int64_t id = image * window_.y.sources + row;
  const std::int64_t slot = id % static_cast<std::int64_t>(held_.size());
  float* const to = ring_.data() + slot * window_.channels * row_pitch_;
  if (held_[slot] == id) return to;
  held_[slot] = id;
  const float* const pixels = image_ + id * window_.x.sources * window_.channels;
  std::int64_t next = 0;
  for (std::int64_t phase = 0; phase < window_.x.step; ++phase) {
    for (std::int64_t i = 0; i < phase_length_; ++i) {
      const std::int64_t column = i * window_.x.step + phase - left_;
      pixels_[next++] = column < 0 || column >= window_.x.sources ? zeros_.data() : pixels + column * window_.channels;
    }
  }
  kernels_.pack(pixels_.data(), next, window_.channels, to, row_pitch_);
  return to;
}

void Packer::pack_sliding(std::int64_t first, std::int64_t count, float* to) {
  const std::vector<Run> all = runs(first, count);
  for (const Run& run : all) {
    for (std::int64_t ky = 0; ky < window_.y.taps; ++ky) transposed_row(run.image, window_.y.source_at(run.y, ky));
  }
  std::vector<Segment> segments(all.size());
  for (std::int64_t t = 0; t < window_.taps(); ++t) {
    std::int32_t at = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Run& run = all[i];
      const std::int64_t column = run.x * window_.x.step + window_.x.first + t % window_.x.taps * window_.x.advance + left_;
      const float* const row = transposed_row(run.image, window_.y.source_at(run.y, t / window_.x.taps));
      segments[i] = {row + column % window_.x.step * phase_length_ + column / window_.x.step, at,
                     static_cast<std::int32_t>(run.length)};
      at += static_cast<std::int32_t>(run.length);
    }
    kernels_.copy(segments.data(), static_cast<std::int64_t>(segments.size()), window_.channels, row_pitch_,
                  to + t * window_.channels * pitch_, pitch_);
  }
  const std::int64_t whole = std::min(whole_vectors(count), pitch_);
  for (std::int64_t row = 0; whole > count && row < window_.taps() * window_.channels; ++row) {
    std::fill(to + row * pitch_ + count, to + row * pitch_ + whole, 0.0F);
  }
}

}  // namespace tessera::cpu::sparse
