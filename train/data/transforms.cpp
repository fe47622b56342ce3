#include "train/data/transforms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/cpu/parallel.h"
#include "core/support/error.h"

namespace tessera {
namespace {

std::string_view name_of(const AugmentConfig& item) {
  if (item.crop) return "crop";
  if (item.resized_crop) return "resized_crop";
  return item.pad_crop ? "pad_crop" : item.flip ? "flip" : "cutout";
}

using Histogram = std::vector<std::array<std::uint64_t, 256>>;  // per channel

Histogram count_values(const ImageSubset& subset, std::int64_t samples) {
  const Shape shape = subset.images->sample_shape();
  const auto channels = static_cast<std::size_t>(shape[2]);
  const int parts = cpu::parts_for(samples, 1);
  std::vector<Histogram> counts(static_cast<std::size_t>(parts), Histogram(channels));
  cpu::parallel_parts(samples, parts, [&](std::int64_t begin, std::int64_t end, int part) {
    Histogram& own = counts[static_cast<std::size_t>(part)];
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(shape.numel()));
    for (std::int64_t i = begin; i < end; ++i) {
      subset.images->read(subset.indices[static_cast<std::size_t>(i * subset.size() / samples)], Framing{}, pixels);
      for (std::size_t at = 0; at < pixels.size(); at += channels) {
        for (std::size_t c = 0; c < channels; ++c) ++own[c][pixels[at + c]];
      }
    }
  });
  for (std::size_t part = 1; part < counts.size(); ++part) {
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t value = 0; value < 256; ++value) counts[0][c][value] += counts[part][c][value];
    }
  }
  return counts[0];
}

}  // namespace

void Normalization::fields(Fields& f) {
  f.add("mean", mean, {.help = "of each channel"});
  f.add("std", stddev, {.help = "standard deviation of each channel"});
}

void AugmentConfig::fields(Fields& f) {
  f.add("crop", crop,
        {.help = "image-folder: cut the sample out at a random place of the resized image, not in its centre",
         .choices = {"random"},
         .example = "random",
         .observable = "bytes"});
  f.add("resized_crop", resized_crop,
        {.help = "image-folder: resize a random part of the image to the sample; its smallest share of the area",
         .range = {.min = 0, .max = 1, .open_min = true},
         .example = "0.08",
         .observable = "bytes"});
  f.add("pad_crop", pad_crop,
        {.help = "pixels of black padding on each side before a random crop",
         .range = at_least(1),
         .example = "4",
         .observable = "bytes"});
  f.add("flip", flip,
        {.help = "mirror half of the samples", .choices = {"horizontal"}, .example = "horizontal", .observable = "bytes"});
  f.add("cutout", cutout,
        {.help = "side of the square that is blanked", .range = at_least(1), .example = "8", .observable = "bytes"});
  const int given = int{crop.has_value()} + int{resized_crop.has_value()} + int{pad_crop.has_value()} + int{flip.has_value()} +
                    int{cutout.has_value()};
  f.require(given == 1, "pad_crop", "an item of augment is exactly one of crop, resized_crop, pad_crop, flip, cutout");
}

Normalization measure_normalization(const ImageSubset& subset, std::int64_t samples) {
  TESSERA_CHECK(subset.size() > 0, ConfigError, "mean and std: auto needs at least one training sample; ", subset.images->name,
                " has none");
  const std::int64_t read = std::min(samples, subset.size());
  const Histogram histogram = count_values(subset, read);
  const Shape shape = subset.images->sample_shape();
  const auto count = static_cast<double>(read * shape[0] * shape[1]);
  Normalization result;
  for (const auto& bins : histogram) {
    double sum = 0;
    for (std::size_t value = 0; value < 256; ++value) sum += static_cast<double>(bins[value] * value);
    const double mean = sum / count;
    double squares = 0;
    for (std::size_t value = 0; value < 256; ++value) {
      const double distance = static_cast<double>(value) - mean;
      squares += static_cast<double>(bins[value]) * distance * distance;
    }
    result.mean.push_back(mean / 255);
    result.stddev.push_back(squares > 0 ? std::sqrt(squares / count) / 255 : 1.0);
  }
  return result;
}

NormalizationTable::NormalizationTable(const Normalization& normalization, std::int64_t channels) : channels_(channels) {
  const auto count = static_cast<std::size_t>(channels);
  TESSERA_CHECK(normalization.mean.size() == count && normalization.stddev.size() == count, ConfigError, "data.mean has ",
                normalization.mean.size(), " values, data.std has ", normalization.stddev.size(), "; images have ", channels,
                " channels");
  for (std::size_t c = 0; c < count; ++c) {
    TESSERA_CHECK(normalization.stddev[c] > 0, ConfigError, "data.std[", c, "] is ", normalization.stddev[c],
                  "; must be positive");
    for (int value = 0; value < 256; ++value) {
      table_.push_back(static_cast<float>((value / 255.0 - normalization.mean[c]) / normalization.stddev[c]));
    }
  }
}

void NormalizationTable::apply(std::span<const std::uint8_t> pixels, float* out) const {
  const float* table = table_.data();
  if (channels_ == 1) {
    for (std::size_t i = 0; i < pixels.size(); ++i) out[i] = table[pixels[i]];
    return;
  }
  const auto channels = static_cast<std::size_t>(channels_);
  for (std::size_t i = 0; i < pixels.size(); i += channels) {
    for (std::size_t c = 0; c < channels; ++c) out[i + c] = table[c * 256 + pixels[i + c]];
  }
}

Augmentation::Augmentation(const std::vector<AugmentConfig>& items, const Shape& image, const Normalization& normalization,
                           std::uint64_t seed)
    : h_(image.dim(0)), w_(image.dim(1)), c_(image.dim(2)) {
  for (const double mean : normalization.mean)
    fill_.push_back(static_cast<std::uint8_t>(std::clamp(mean * 255, 0.0, 255.0) + 0.5));
  for (std::size_t i = 0; i < items.size(); ++i) {
    TESSERA_CHECK(!items[i].cutout || *items[i].cutout <= std::min(h_, w_), ConfigError, "data.augment[", i, "].cutout is ",
                  *items[i].cutout, "; images are ", h_, "x", w_);
    Step step{items[i], RngStream(seed, str("data.augment.", i), name_of(items[i]))};
    if (!items[i].crop && !items[i].resized_crop) {
      steps_.push_back(std::move(step));
      continue;
    }
    TESSERA_CHECK(!frame_, ConfigError, "data.augment[", i, "]: crop and resized_crop stand once in augment");
    frame_ = std::move(step);
  }
}

Framing Augmentation::framing(std::int64_t epoch, std::int64_t sample) const {
  if (!frame_) return {};
  Framing framing;
  framing.kind = frame_->config.crop ? Framing::Kind::random : Framing::Kind::resized;
  framing.min_area = frame_->config.resized_crop.value_or(1.0);
  framing.stream = frame_->stream;
  framing.epoch = static_cast<std::uint64_t>(epoch);
  framing.sample = static_cast<std::uint64_t>(sample);
  return framing;
}

void Augmentation::apply(std::span<std::uint8_t> pixels, std::span<std::uint8_t> scratch, std::int64_t epoch,
                         std::int64_t sample) const {
  for (const Step& step : steps_) {
    const auto words = random_words(step.stream, static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(sample));
    if (step.config.pad_crop) {
      const std::int64_t pad = *step.config.pad_crop;
      pad_crop(pixels, scratch, below(words[0], 2 * pad + 1) - pad, below(words[1], 2 * pad + 1) - pad);
    } else if (step.config.flip) {
      if (words[0] >> 31) flip(pixels);
    } else {
      cutout(pixels, *step.config.cutout, below(words[0], h_), below(words[1], w_));
    }
  }
}

// Output row y is input row y + top, or black outside the image; likewise for columns.
void Augmentation::pad_crop(std::span<std::uint8_t> pixels, std::span<std::uint8_t> scratch, std::int64_t top,
                            std::int64_t left) const {
  if (top == 0 && left == 0) return;
  std::fill(scratch.begin(), scratch.end(), std::uint8_t{0});
  const std::int64_t first = std::max<std::int64_t>(0, -left);
  const std::int64_t last = std::min(w_, w_ - left);
  for (std::int64_t y = std::max<std::int64_t>(0, -top); y < std::min(h_, h_ - top) && first < last; ++y) {
    std::memcpy(scratch.data() + (y * w_ + first) * c_, pixels.data() + ((y + top) * w_ + first + left) * c_,
                static_cast<std::size_t>((last - first) * c_));
  }
  std::copy(scratch.begin(), scratch.end(), pixels.begin());
}

void Augmentation::flip(std::span<std::uint8_t> pixels) const {
  for (std::int64_t y = 0; y < h_; ++y) {
    std::uint8_t* row = pixels.data() + y * w_ * c_;
    for (std::int64_t x = 0; x < w_ / 2; ++x) std::swap_ranges(row + x * c_, row + (x + 1) * c_, row + (w_ - 1 - x) * c_);
  }
}

// Fills rows y - side / 2 .. y - side / 2 + side - 1, clipped at the border; likewise for columns.
void Augmentation::cutout(std::span<std::uint8_t> pixels, std::int64_t side, std::int64_t y, std::int64_t x) const {
  const std::int64_t top = y - side / 2;
  const std::int64_t left = x - side / 2;
  for (std::int64_t row = std::max<std::int64_t>(0, top); row < std::min(h_, top + side); ++row) {
    for (std::int64_t column = std::max<std::int64_t>(0, left); column < std::min(w_, left + side); ++column) {
      std::copy(fill_.begin(), fill_.end(), pixels.begin() + (row * w_ + column) * c_);
    }
  }
}

}  // namespace tessera
