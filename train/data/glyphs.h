// The built-in data set "glyphs": ten hand-drawn-looking symbols on 28x28 grey images, drawn from a seed, so that a first
// training run needs no download. Each image has its own affine map, wobble, stroke width, contrast, stray strokes, erased patch
// and background noise. An image is a pure function of (seed, split, index).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "train/data/image_config.h"

namespace tessera {

inline constexpr std::int64_t kGlyphSide = 28;
inline constexpr std::int64_t kGlyphClasses = 10;

// The form `name: glyphs` of the data block.
struct GlyphsConfig : ImageConfig {
  static constexpr const char* kName = "glyphs";
  static constexpr RootUse kRoot = RootUse::none;
  std::optional<std::int64_t> count;  // training images, 10000
  std::optional<std::int64_t> test_count;  // test images, 2000
  void fields(Fields& f);

  Shape sample_shape() const { return {1, kGlyphSide, kGlyphSide, 1}; }
  ImageSplits read_images(const std::string& root, std::uint64_t seed, std::vector<BadFile>* bad) const;
};

// Image `index` of split "train" or "test"; its class is index % 10. image has 28 * 28 bytes.
void draw_glyph(std::uint64_t seed, std::string_view split, std::int64_t index, std::span<std::uint8_t> image);

// Images 0..count-1 of a split: [count, 28, 28, 1]. Classes differ by at most one sample.
MemoryDataset make_glyphs(std::uint64_t seed, std::string_view split, std::int64_t count);

}  // namespace tessera
