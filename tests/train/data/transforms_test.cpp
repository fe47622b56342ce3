#include "train/data/transforms.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "core/support/error.h"

namespace tessera {
namespace {

constexpr std::int64_t kH = 5;
constexpr std::int64_t kW = 7;
constexpr std::int64_t kC = 3;

using Pixels = std::array<std::uint8_t, kH * kW * kC>;

Pixels ramp() {
  Pixels pixels{};
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{1});  // no zero, so that content differs from padding
  return pixels;
}

std::uint8_t at(const Pixels& pixels, std::int64_t y, std::int64_t x, std::int64_t c) {
  if (y < 0 || y >= kH || x < 0 || x >= kW) return 0;
  return pixels[static_cast<std::size_t>((y * kW + x) * kC + c)];
}

Normalization grey() { return {{0.5, 0.25, 0.0}, {1, 1, 1}}; }

Pixels augmented(const std::vector<AugmentConfig>& items, std::int64_t epoch, std::int64_t sample, std::uint64_t seed = 3) {
  const Augmentation augmentation(items, {kH, kW, kC}, grey(), seed);
  Pixels pixels = ramp();
  Pixels scratch{};
  augmentation.apply(pixels, scratch, epoch, sample);
  return pixels;
}

Pixels shifted(std::int64_t top, std::int64_t left) {
  Pixels pixels{};
  std::size_t i = 0;
  for (std::int64_t y = 0; y < kH; ++y) {
    for (std::int64_t x = 0; x < kW; ++x) {
      for (std::int64_t c = 0; c < kC; ++c) pixels[i++] = at(ramp(), y + top, x + left, c);
    }
  }
  return pixels;
}

TEST(Transforms, PadCropIsEachShiftEquallyOften) {
  for (const std::int64_t pad : {1, 2}) {
    std::map<Pixels, int> seen;
    for (int sample = 0; sample < 4000; ++sample) ++seen[augmented({{.pad_crop = pad}}, 0, sample)];
    const std::int64_t places = 2 * pad + 1;
    for (std::int64_t top = -pad; top <= pad; ++top) {
      for (std::int64_t left = -pad; left <= pad; ++left) {
        const double share = static_cast<double>(seen[shifted(top, left)]) / 4000;
        EXPECT_NEAR(share * static_cast<double>(places * places), 1.0, 0.4) << top << ", " << left;
      }
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(places * places));
  }
}

TEST(Transforms, PadCropMayLeaveTheImage) {
  bool black = false;
  for (int sample = 0; sample < 200; ++sample) {
    black = black || augmented({{.pad_crop = 20}}, 0, sample) == Pixels{};
  }
  EXPECT_TRUE(black);
}

TEST(Transforms, FlipMirrorsHalfOfTheSamples) {
  Pixels mirrored{};
  std::size_t i = 0;
  for (std::int64_t y = 0; y < kH; ++y) {
    for (std::int64_t x = 0; x < kW; ++x) {
      for (std::int64_t c = 0; c < kC; ++c) mirrored[i++] = at(ramp(), y, kW - 1 - x, c);
    }
  }
  int flipped = 0;
  for (int sample = 0; sample < 1000; ++sample) {
    const auto pixels = augmented({{.flip = "horizontal"}}, 2, sample);
    ASSERT_TRUE(pixels == ramp() || pixels == mirrored);
    flipped += pixels == mirrored;
  }
  EXPECT_NEAR(flipped, 500, 60);
}

TEST(Transforms, CutoutWritesTheMeanInASquareCutAtTheBorder) {
  int whole = 0;
  for (int sample = 0; sample < 300; ++sample) {
    const auto pixels = augmented({{.cutout = 3}}, 0, sample);
    int changed = 0;
    for (std::int64_t y = 0; y < kH; ++y) {
      for (std::int64_t x = 0; x < kW; ++x) {
        if (at(pixels, y, x, 1) == at(ramp(), y, x, 1) && at(pixels, y, x, 2) == at(ramp(), y, x, 2)) continue;
        ++changed;
        EXPECT_EQ(at(pixels, y, x, 0), 128);
        EXPECT_EQ(at(pixels, y, x, 1), 64);
        EXPECT_EQ(at(pixels, y, x, 2), 0);
      }
    }
    EXPECT_TRUE(changed == 4 || changed == 6 || changed == 9) << changed;
    whole += changed == 9;
  }
  EXPECT_GT(whole, 0);
}

TEST(Transforms, DependOnSeedEpochAndSampleOnly) {
  const std::vector<AugmentConfig> items{{.pad_crop = 4}, {.flip = "horizontal"}, {.cutout = 2}};
  EXPECT_EQ(augmented(items, 1, 2), augmented(items, 1, 2));
  EXPECT_NE(augmented(items, 1, 2), augmented(items, 2, 2));
  EXPECT_NE(augmented(items, 1, 2), augmented(items, 1, 3));
  EXPECT_NE(augmented(items, 1, 2), augmented(items, 1, 2, 4));
}

TEST(Transforms, CutoutLargerThanTheImageIsRefused) {
  try {
    augmented({{.flip = "horizontal"}, {.cutout = 6}}, 0, 0);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "data.augment[1].cutout is 6; images are 5x7");
  }
}

TEST(Transforms, MeasuredStatisticsMatchDirectSums) {
  auto data = std::make_shared<MemoryDataset>();
  data->images = Tensor::from(std::vector<std::uint8_t>{0, 7, 255, 7, 51, 7, 99, 99, 99, 99, 99, 99}, {2, 1, 3, 2});
  data->labels = Tensor::zeros({2}, DType::i64);
  data->classes = {"a"};
  const Normalization found = measure_normalization({data, {0}});
  EXPECT_NEAR(found.mean[0], 102.0 / 255, 1e-12);
  EXPECT_NEAR(found.stddev[0], std::sqrt((102.0 * 102 + 153.0 * 153 + 51.0 * 51) / 3) / 255, 1e-12);
  EXPECT_NEAR(found.mean[1], 7.0 / 255, 1e-12);
  EXPECT_EQ(found.stddev[1], 1.0);
  EXPECT_THROW(measure_normalization({data, {}}), ConfigError);
}

TEST(Transforms, TableAppliesEachChannelsStatistics) {
  const NormalizationTable table({{0.5, 0.25, 0.0}, {0.5, 2.0, 1.0}}, 3);
  const std::vector<std::uint8_t> pixels{0, 51, 255, 255, 0, 102};
  std::vector<float> out(6);
  table.apply(pixels, out.data());
  const std::vector<float> expected{-1.0f, -0.025f, 1.0f, 1.0f, -0.125f, 0.4f};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_FLOAT_EQ(out[i], expected[i]);
  EXPECT_THROW(NormalizationTable({{0.5}, {0.5}}, 3), ConfigError);
  EXPECT_THROW(NormalizationTable({{0.5}, {0.0}}, 1), ConfigError);
}

}  // namespace
}  // namespace tessera
