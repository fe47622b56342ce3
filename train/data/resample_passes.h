// The two passes of resampling (train/data/resample.h), both in vectors: weighted sums of bytes along rows of RGB pixels, then of
// whole rows. The arithmetic is that of PIL in whole numbers: a sum is exact and rounded once, so that its order means nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

inline constexpr std::int64_t kResampleChannels = 3;
inline constexpr int kResampleBits = 22;  // PIL: a sum of weighted bytes needs 8 bits and 2 to spare of an int's 32

// Output pixels of an axis, each a weighted sum of neighbouring input pixels. Neither begin nor end of its taps ever goes back.
struct ResampleAxis {
  struct Taps {
    std::int64_t begin = 0;
    std::int64_t count = 0;
  };
  std::vector<Taps> taps;
  std::int64_t stride = 0;  // of weights per output pixel; even, because taps are taken two at once
  std::vector<int> weights;  // in 2^-22; together about 1; 0 behind the taps

  std::int64_t size() const { return static_cast<std::int64_t>(taps.size()); }
  std::int64_t begin() const { return taps.front().begin; }  // the input pixels that any of them reads
  std::int64_t end() const { return taps.back().begin + taps.back().count; }
};

// Output pixels first .. first + size - 1 of an axis of `input` pixels that becomes one of `output`, by the triangle filter.
ResampleAxis resample_axis(std::int64_t input, std::int64_t output, std::int64_t first, std::int64_t size);

// Part of an image.
struct PixelRows {
  std::span<const std::uint8_t> bytes;  // from its first pixel to the image's end
  std::int64_t stride = 0;  // bytes from row to row
  std::int64_t width = 0;  // pixels
  std::int64_t count = 0;
};

// Rows of bytes with room behind each, and one row behind the last, for whole vectors and for pairs of rows.
struct PaddedRows {
  std::int64_t stride = 0;
  std::vector<std::uint8_t> bytes;
};

// axis.size() pixels of every row, rounded to bytes.
PaddedRows resample_across(const PixelRows& rows, const ResampleAxis& axis);

// axis.size() rows of row_bytes. The first row given is axis.begin().
void resample_down(const PaddedRows& rows, const ResampleAxis& axis, std::int64_t row_bytes, std::span<std::uint8_t> out);

}  // namespace tessera
