// What happens to a sample between the data set and the batch: augmentations on bytes, then normalisation to floats.
// An augmented sample is a pure function of (seed, epoch, sample index), so that no thread count changes a byte.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "core/rng.h"
#include "train/data/framing.h"
#include "train/data/image_dataset.h"

namespace tessera {

// One item of data.augment: a block with exactly one of these keys.
struct AugmentConfig {
  std::optional<std::string> crop = {};  // image-folder: "random": a random place of the resized image, not its centre
  std::optional<double> resized_crop = {};  // image-folder: a random part of at least this share of the area, resized
  std::optional<std::int64_t> pad_crop = {};  // pad by this much black on each side, cut the old size out at a random place
  std::optional<std::string> flip = {};  // "horizontal": mirrors left and right with probability 1/2
  // a square of this side around a random pixel becomes the mean (DeVries, Taylor 2017)
  std::optional<std::int64_t> cutout = {};
  void fields(Fields& f);
};

// Per channel, in units where a byte of 255 is 1: x = (byte / 255 - mean) / stddev.
struct Normalization {
  std::vector<double> mean;
  std::vector<double> stddev;

  void fields(Fields& f);
};
// Exact integer sums over the subset, so the order of samples does not matter. A constant channel gets stddev 1. Where the
// subset has more than `samples` samples, that many are read, evenly spread over it. Samples are not augmented. Runs on the
// OpenMP threads, which change no bit. Throws ConfigError on an empty subset.
Normalization measure_normalization(const ImageSubset& subset, std::int64_t samples = std::numeric_limits<std::int64_t>::max());

// Byte -> float for every channel: 256 entries each.
class NormalizationTable {
 public:
  // Throws ConfigError unless mean and stddev have one value per channel and every stddev is positive.
  NormalizationTable(const Normalization& normalization, std::int64_t channels);
  // pixels [.., c] -> out, same count.
  void apply(std::span<const std::uint8_t> pixels, float* out) const;

 private:
  std::int64_t channels_;
  std::vector<float> table_;
};

class Augmentation {
 public:
  // image is [h, w, c]; fill is what cutout writes per channel. Throws ConfigError on a cutout larger than the image.
  Augmentation(const std::vector<AugmentConfig>& items, const Shape& image, const Normalization& normalization,
               std::uint64_t seed);

  // Which part of the image to read: what crop or resized_crop draws, the centre without them.
  Framing framing(std::int64_t epoch, std::int64_t sample) const;
  // Transforms `pixels` (h * w * c bytes) in place; `scratch` has the same size and holds nothing of value after.
  void apply(std::span<std::uint8_t> pixels, std::span<std::uint8_t> scratch, std::int64_t epoch, std::int64_t sample) const;

 private:
  struct Step {
    AugmentConfig config;
    RngStream stream;
  };

  void pad_crop(std::span<std::uint8_t> pixels, std::span<std::uint8_t> scratch, std::int64_t top, std::int64_t left) const;
  void flip(std::span<std::uint8_t> pixels) const;
  void cutout(std::span<std::uint8_t> pixels, std::int64_t side, std::int64_t y, std::int64_t x) const;

  std::int64_t h_, w_, c_;
  std::vector<std::uint8_t> fill_;
  std::optional<Step> frame_;  // crop or resized_crop
  std::vector<Step> steps_;
};

}  // namespace tessera
