// From an image of any size to a sample: which part, how large, and antialiased bilinear resampling with the arithmetic of PIL's
// `Image.resize(..., BILINEAR)`, so that the bytes are those of torchvision's Resize, CenterCrop and RandomResizedCrop on PIL
// images (torchvision 0.14, PIL 9.4).
#pragma once

#include <cstdint>
#include <span>

#include "train/data/framing.h"
#include "train/data/image.h"

namespace tessera {

struct Box {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

// The part `source` of the image is resized to height x width. The square at (top, left) of the result is the sample.
struct Frame {
  Box source;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t top = 0;
  std::int64_t left = 0;
  friend bool operator==(const Frame&, const Frame&) = default;
};

// The frame for a sample of crop x crop. Kinds centre and random resize the whole image so that its shorter side is `resize`;
// resized takes a part of the image whose share of the area is uniform in [min_area, 1] and whose aspect ratio is log-uniform in
// [3/4, 4/3], by at most ten draws, else the largest centred part with a ratio in that range. Needs crop <= resize.
Frame choose_frame(const Framing& framing, std::int64_t height, std::int64_t width, std::int64_t resize, std::int64_t crop);

// Writes crop * crop * 3 bytes.
void resample(const Image& image, const Frame& frame, std::int64_t crop, std::span<std::uint8_t> out);

}  // namespace tessera
