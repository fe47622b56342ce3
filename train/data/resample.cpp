#include "train/data/resample.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tessera {
namespace {

constexpr std::int64_t kChannels = 3;
constexpr int kPrecisionBits = 22;  // PIL: a sum of weighted bytes needs 8 bits and 2 to spare of an int's 32

// Output pixels first .. first + size - 1 of an axis, each a weighted sum of neighbouring input pixels.
struct Axis {
  struct Taps {
    std::int64_t begin = 0;
    std::int64_t count = 0;
  };
  std::int64_t stride = 0;  // of weights per output pixel
  std::vector<Taps> taps;
  std::vector<int> weights;
};

// Pillow, Resample.c: precompute_coeffs() and normalize_coeffs_8bpc() with the triangle filter.
Axis make_axis(std::int64_t input, std::int64_t output, std::int64_t first, std::int64_t size) {
  const double scale = static_cast<double>(input) / static_cast<double>(output);
  const double support = std::max(scale, 1.0);
  Axis axis;
  axis.stride = static_cast<std::int64_t>(std::ceil(support)) * 2 + 1;
  axis.weights.assign(static_cast<std::size_t>(axis.stride * size), 0);
  std::vector<double> exact(static_cast<std::size_t>(axis.stride));
  for (std::int64_t i = 0; i < size; ++i) {
    const double centre = (static_cast<double>(first + i) + 0.5) * scale;
    const auto begin = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - support + 0.5));
    const auto end = std::min(input, static_cast<std::int64_t>(centre + support + 0.5));
    double sum = 0;
    for (std::int64_t x = begin; x < end; ++x) {
      const double weight = std::max(0.0, 1.0 - std::abs((static_cast<double>(x) - centre + 0.5) / support));
      exact[static_cast<std::size_t>(x - begin)] = weight;
      sum += weight;
    }
    for (std::int64_t x = 0; x < end - begin; ++x) {
      const double weight = exact[static_cast<std::size_t>(x)] / sum;
      axis.weights[static_cast<std::size_t>(i * axis.stride + x)] = static_cast<int>(0.5 + weight * (1 << kPrecisionBits));
    }
    axis.taps.push_back({begin, end - begin});
  }
  return axis;
}

// One pixel: taps `step` bytes apart.
void weigh(const std::uint8_t* from, std::int64_t step, const int* weights, std::int64_t count, std::uint8_t* out) {
  int sums[kChannels] = {1 << (kPrecisionBits - 1), 1 << (kPrecisionBits - 1), 1 << (kPrecisionBits - 1)};
  for (std::int64_t i = 0; i < count; ++i, from += step) {
    for (std::int64_t c = 0; c < kChannels; ++c) sums[c] += from[c] * weights[i];
  }
  for (std::int64_t c = 0; c < kChannels; ++c) out[c] = static_cast<std::uint8_t>(std::clamp(sums[c] >> kPrecisionBits, 0, 255));
}

Frame resize_shorter_side(std::int64_t height, std::int64_t width, std::int64_t resize) {
  Frame frame{{0, 0, height, width}, resize, resize, 0, 0};
  const auto longer = [resize](std::int64_t long_side, std::int64_t short_side) {
    return static_cast<std::int64_t>(static_cast<double>(resize * long_side) / static_cast<double>(short_side));
  };
  if (height > width) frame.height = longer(height, width);
  if (width > height) frame.width = longer(width, height);
  return frame;
}

std::int64_t rounded(double value) { return std::lrint(value); }  // halves to even, as Python's round()

// torchvision, RandomResizedCrop.get_params().
Box choose_part(const Framing& framing, std::int64_t height, std::int64_t width) {
  constexpr double kMinRatio = 3.0 / 4.0;
  constexpr double kMaxRatio = 4.0 / 3.0;
  constexpr std::uint64_t kTries = 10;
  for (std::uint64_t attempt = 0; attempt < kTries; ++attempt) {
    const auto words = random_words(framing.stream, framing.epoch, framing.sample * kTries + attempt);
    const double share = framing.min_area + (1 - framing.min_area) * static_cast<double>(to_unit_float(words[0]));
    const double area = static_cast<double>(height) * static_cast<double>(width) * share;
    const double log_ratio = std::log(kMinRatio) + std::log(kMaxRatio / kMinRatio) * static_cast<double>(to_unit_float(words[1]));
    const double ratio = std::exp(log_ratio);
    const std::int64_t w = rounded(std::sqrt(area * ratio));
    const std::int64_t h = rounded(std::sqrt(area / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    return {below(words[2], height - h + 1), below(words[3], width - w + 1), h, w};
  }
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  Box box{0, 0, height, width};
  if (ratio < kMinRatio) box.height = rounded(static_cast<double>(width) / kMinRatio);
  if (ratio > kMaxRatio) box.width = rounded(static_cast<double>(height) * kMaxRatio);
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

}  // namespace

Frame choose_frame(const Framing& framing, std::int64_t height, std::int64_t width, std::int64_t resize, std::int64_t crop) {
  if (framing.kind == Framing::Kind::resized) return {choose_part(framing, height, width), crop, crop, 0, 0};
  Frame frame = resize_shorter_side(height, width, resize);
  if (framing.kind == Framing::Kind::random) {
    const auto words = random_words(framing.stream, framing.epoch, framing.sample);
    frame.top = below(words[0], frame.height - crop + 1);
    frame.left = below(words[1], frame.width - crop + 1);
  } else {
    frame.top = rounded(static_cast<double>(frame.height - crop) / 2);
    frame.left = rounded(static_cast<double>(frame.width - crop) / 2);
  }
  return frame;
}

// Rows first, then columns, rounding to bytes between, as PIL; an axis that keeps its size has weights of 0 and 1 and changes
// nothing. Only the rows and columns that the sample needs are made.
void resample(const Image& image, const Frame& frame, std::int64_t crop, std::span<std::uint8_t> out) {
  const Axis across = make_axis(frame.source.width, frame.width, frame.left, crop);
  const Axis down = make_axis(frame.source.height, frame.height, frame.top, crop);
  const std::int64_t first_row = down.taps.front().begin;
  const std::int64_t end_row = down.taps.back().begin + down.taps.back().count;
  const std::int64_t row_bytes = crop * kChannels;
  std::vector<std::uint8_t> narrow(static_cast<std::size_t>((end_row - first_row) * row_bytes));
  for (std::int64_t y = first_row; y < end_row; ++y) {
    const std::uint8_t* row = image.pixels.data() + ((frame.source.top + y) * image.width + frame.source.left) * kChannels;
    std::uint8_t* to = narrow.data() + (y - first_row) * row_bytes;
    for (std::int64_t x = 0; x < crop; ++x) {
      const Axis::Taps& taps = across.taps[static_cast<std::size_t>(x)];
      weigh(row + taps.begin * kChannels, kChannels, &across.weights[static_cast<std::size_t>(x * across.stride)], taps.count,
            to + x * kChannels);
    }
  }
  for (std::int64_t y = 0; y < crop; ++y) {
    const Axis::Taps& taps = down.taps[static_cast<std::size_t>(y)];
    const int* weights = &down.weights[static_cast<std::size_t>(y * down.stride)];
    const std::uint8_t* from = narrow.data() + (taps.begin - first_row) * row_bytes;
    for (std::int64_t x = 0; x < crop; ++x) {
      weigh(from + x * kChannels, row_bytes, weights, taps.count, out.data() + y * row_bytes + x * kChannels);
    }
  }
}

}  // namespace tessera
