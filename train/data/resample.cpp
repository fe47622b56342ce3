#include "train/data/resample.h"

#include <cmath>

#include "train/data/resample_passes.h"

namespace tessera {
namespace {

Frame resize_shorter_side(std::int64_t height, std::int64_t width, std::int64_t resize) {
  Frame frame{{0, 0, height, width}, resize, resize, 0, 0};
  const auto longer = [resize](std::int64_t long_side, std::int64_t short_side) {
    return static_cast<std::int64_t>(static_cast<double>(resize * long_side) / static_cast<double>(short_side));
  };
  if (height > width) frame.height = longer(height, width);
  if (width > height) frame.width = longer(width, height);
  return frame;
}

std::int64_t rounded(double value) { return std::lrint(value); }  // halves to even, like Python's round()

// Follows torchvision, RandomResizedCrop.get_params().
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

// Resizes rows first, then columns, and rounds to bytes in between, as PIL does. An axis that keeps its size has weights 0 and 1
// and changes nothing. Only the rows and columns that the sample needs are computed.
void resample(const Image& image, const Frame& frame, std::int64_t crop, std::span<std::uint8_t> out) {
  const ResampleAxis across = resample_axis(frame.source.width, frame.width, frame.left, crop);
  const ResampleAxis down = resample_axis(frame.source.height, frame.height, frame.top, crop);
  const std::int64_t stride = image.width * kResampleChannels;
  const std::int64_t first = (frame.source.top + down.begin()) * stride + frame.source.left * kResampleChannels;
  const PixelRows rows{.bytes = std::span(image.pixels).subspan(static_cast<std::size_t>(first)),
                       .stride = stride,
                       .width = frame.source.width,
                       .count = down.end() - down.begin()};
  resample_down(resample_across(rows, across), down, crop * kResampleChannels, out);
}

}  // namespace tessera
