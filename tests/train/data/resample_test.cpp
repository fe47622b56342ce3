// The expected bytes are torchvision's, printed by tests/oracle/resample.py, or come from plain sums.
#include "train/data/resample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "tests/support/image_files.h"
#include "train/data/resample_passes.h"

namespace tessera {
namespace {

using testing::Bytes;

struct Expected {
  std::int64_t sum;
  Bytes first;
  Bytes last;
};

void expect_bytes(std::int64_t height, std::int64_t width, const Frame& frame, std::int64_t crop, const Expected& expected) {
  const Image image{height, width, testing::pattern(height, width)};
  Bytes out(static_cast<std::size_t>(crop * crop * 3), 99);
  resample(image, frame, crop, out);
  EXPECT_EQ(std::accumulate(out.begin(), out.end(), std::int64_t{0}), expected.sum);
  EXPECT_EQ(Bytes(out.begin(), out.begin() + 12), expected.first);
  EXPECT_EQ(Bytes(out.end() - 6, out.end()), expected.last);
}

TEST(Resample, CentreHasTheBytesOfTorchvision) {
  const auto check = [](std::int64_t height, std::int64_t width, std::int64_t resize, std::int64_t crop,
                        const Expected& expected) {
    expect_bytes(height, width, choose_frame({}, height, width, resize, crop), crop, expected);
  };
  check(37, 53, 16, 13, {67103, {68, 114, 116, 75, 126, 89, 82, 139, 115, 90, 152, 146}, {86, 88, 155, 93, 126, 163}});
  check(53, 37, 16, 13, {65085, {89, 169, 131, 96, 192, 126, 103, 208, 126, 110, 177, 153}, {111, 109, 161, 118, 143, 121}});
  check(9, 7, 16, 11, {22402, {13, 18, 23, 14, 18, 25, 15, 19, 32, 17, 20, 39}, {56, 93, 182, 57, 96, 202}});
  check(16, 16, 16, 16, {78272, {0, 0, 0, 3, 0, 5, 6, 0, 20, 9, 0, 45}, {147, 119, 151, 150, 134, 40}});
  check(5, 64, 8, 7, {15166, {90, 0, 145, 92, 0, 175, 94, 0, 160, 95, 0, 37}, {124, 157, 120, 126, 159, 170}});
  check(1, 1, 4, 3, {0, Bytes(12, 0), Bytes(6, 0)});
}

TEST(Resample, PartsHaveTheBytesOfTorchvision) {
  const auto check = [](const Box& box, const Expected& expected) { expect_bytes(37, 53, {box, 8, 8, 0, 0}, 8, expected); };
  check({3, 5, 20, 30}, {25700, {48, 71, 145, 58, 84, 112, 70, 100, 114, 81, 115, 127}, {234, 89, 123, 228, 141, 117}});
  check({0, 0, 37, 53}, {24122, {26, 33, 87, 44, 46, 126, 64, 61, 125, 84, 76, 120}, {108, 125, 131, 126, 129, 146}});
  check({36, 52, 1, 1}, {34304, {152, 220, 164, 152, 220, 164, 152, 220, 164, 152, 220, 164}, {152, 220, 164, 152, 220, 164}});
  check({10, 0, 6, 9}, {27259, {70, 112, 131, 74, 123, 139, 77, 133, 159, 80, 145, 191}, {125, 74, 168, 129, 27, 30}});
}

// Adds the terms one by one, as PIL does.
void weigh(const std::uint8_t* from, std::int64_t step, const int* weights, std::int64_t count, std::uint8_t* out) {
  for (std::int64_t c = 0; c < kResampleChannels; ++c) {
    int sum = 1 << (kResampleBits - 1);
    for (std::int64_t i = 0; i < count; ++i) sum += from[i * step + c] * weights[i];
    out[c] = static_cast<std::uint8_t>(std::clamp(sum >> kResampleBits, 0, 255));
  }
}

Bytes plainly_resampled(const Image& image, const Frame& frame, std::int64_t crop) {
  const Box& box = frame.source;
  const ResampleAxis across = resample_axis(box.width, frame.width, frame.left, crop);
  const ResampleAxis down = resample_axis(box.height, frame.height, frame.top, crop);
  const auto at = [](std::int64_t row, std::int64_t column, std::int64_t width) {
    return static_cast<std::size_t>((row * width + column) * kResampleChannels);
  };
  const auto sums = [&](const ResampleAxis& axis, std::int64_t i, const std::uint8_t* from, std::int64_t step, std::uint8_t* to) {
    const ResampleAxis::Taps& taps = axis.taps[static_cast<std::size_t>(i)];
    weigh(from + taps.begin * step, step, &axis.weights[static_cast<std::size_t>(i * axis.stride)], taps.count, to);
  };
  Bytes narrow(at(box.height, 0, crop));
  Bytes out(at(crop, 0, crop));
  for (std::int64_t y = 0; y < box.height; ++y) {
    const std::uint8_t* const row = &image.pixels[at(box.top + y, box.left, image.width)];
    for (std::int64_t x = 0; x < crop; ++x) sums(across, x, row, kResampleChannels, &narrow[at(y, x, crop)]);
  }
  for (std::int64_t y = 0; y < crop; ++y) {
    for (std::int64_t x = 0; x < crop; ++x) sums(down, y, &narrow[at(0, x, crop)], at(1, 0, crop), &out[at(y, x, crop)]);
  }
  return out;
}

enum class Content { noise, grey, white };

Image image_of(std::int64_t height, std::int64_t width, Content content) {
  std::mt19937 random(static_cast<unsigned>(height * 1000 + width));
  Image image{height, width, Bytes(static_cast<std::size_t>(height * width * kResampleChannels), 255)};
  for (std::size_t i = 0; i < image.pixels.size() && content != Content::white; ++i) {
    const bool repeats = content == Content::grey && i % 3 != 0;
    image.pixels[i] = repeats ? image.pixels[i - 1] : static_cast<std::uint8_t>(random());
  }
  return image;
}

// Also checks that nothing around the sample is written.
void expect_plain_bytes(const Image& image, const Frame& frame, std::int64_t crop) {
  const auto size = static_cast<std::size_t>(crop * crop * kResampleChannels);
  constexpr std::size_t kGuard = 64;
  Bytes guarded(size + 2 * kGuard, 99);
  resample(image, frame, crop, std::span(guarded).subspan(kGuard, size));
  const Bytes expected = plainly_resampled(image, frame, crop);
  const Box& box = frame.source;
  ASSERT_TRUE(std::equal(expected.begin(), expected.end(), guarded.begin() + kGuard))
      << box.height << 'x' << box.width << " at " << box.top << ", " << box.left << " of " << image.height << 'x' << image.width
      << " to " << frame.height << 'x' << frame.width << ", crop " << crop << " at " << frame.top << ", " << frame.left;
  EXPECT_TRUE(std::all_of(guarded.begin(), guarded.begin() + kGuard, [](auto byte) { return byte == 99; }));
  EXPECT_TRUE(std::all_of(guarded.end() - kGuard, guarded.end(), [](auto byte) { return byte == 99; }));
}

// Scales up and down, from one pixel and from many. Rows of 1, 11 and 32 pixels are 0.1, 1.03 and 3 vectors of 32 bytes.
TEST(Resample, VectorsHaveTheBytesOfPlainSums) {
  for (const std::int64_t height : {1, 2, 5, 13, 37, 64}) {
    for (const std::int64_t width : {1, 3, 6, 17, 53, 97}) {
      for (const Content content : {Content::noise, Content::grey, Content::white}) {
        const Image image = image_of(height, width, content);
        for (const std::int64_t crop : {1, 3, 11, 32, 43}) {
          expect_plain_bytes(image, {{0, 0, height, width}, crop, crop, 0, 0}, crop);
          expect_plain_bytes(image, choose_frame({}, height, width, crop + 4, crop), crop);
        }
      }
    }
  }
}

TEST(Resample, PartsHaveTheBytesOfPlainSumsAtEveryEdge) {
  const Image image = image_of(23, 31, Content::noise);
  for (const std::int64_t h : {1, 2, 7, 23}) {
    for (const std::int64_t w : {1, 4, 5, 31}) {
      for (const std::int64_t top : {std::int64_t{0}, (23 - h) / 2, 23 - h}) {
        for (const std::int64_t left : {std::int64_t{0}, (31 - w) / 2, 31 - w}) {
          for (const std::int64_t crop : {5, 16}) expect_plain_bytes(image, {{top, left, h, w}, crop, crop, 0, 0}, crop);
        }
      }
    }
  }
}

TEST(Resample, ThousandsOfTapsHaveTheBytesOfPlainSums) {
  for (const Content content : {Content::noise, Content::white}) {
    expect_plain_bytes(image_of(3, 5003, content), {{0, 0, 3, 5003}, 2, 2, 0, 0}, 2);
    expect_plain_bytes(image_of(5003, 3, content), {{0, 0, 5003, 3}, 2, 2, 0, 0}, 2);
  }
}

Framing framing(Framing::Kind kind, std::uint64_t epoch, std::uint64_t sample) {
  return {kind, 0.08, RngStream(3, "data.augment.0", "crop"), epoch, sample};
}

TEST(Resample, RandomPlacesReachBothEdges) {
  std::set<std::int64_t> tops;
  std::set<std::int64_t> lefts;
  for (std::uint64_t sample = 0; sample < 400; ++sample) {
    const Frame frame = choose_frame(framing(Framing::Kind::random, 1, sample), 30, 60, 10, 8);
    EXPECT_EQ(frame.height, 10);
    EXPECT_EQ(frame.width, 20);
    tops.insert(frame.top);
    lefts.insert(frame.left);
  }
  EXPECT_EQ(tops, (std::set<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(lefts.size(), 13u);
  EXPECT_EQ(*lefts.rbegin(), 12);
}

TEST(Resample, RandomPartsKeepAreaAndRatio) {
  double smallest = 1;
  double largest = 0;
  for (std::uint64_t sample = 0; sample < 1000; ++sample) {
    const Box box = choose_frame(framing(Framing::Kind::resized, 0, sample), 300, 400, 256, 224).source;
    ASSERT_TRUE(box.top >= 0 && box.left >= 0 && box.top + box.height <= 300 && box.left + box.width <= 400);
    const double ratio = static_cast<double>(box.width) / static_cast<double>(box.height);
    EXPECT_TRUE(ratio > 0.74 && ratio < 1.35) << ratio;  // 3/4 and 4/3, with room for rounded sides
    const double share = static_cast<double>(box.width * box.height) / (300 * 400);
    smallest = std::min(smallest, share);
    largest = std::max(largest, share);
  }
  EXPECT_NEAR(smallest, 0.08, 0.01);
  EXPECT_GT(largest, 0.9);
}

TEST(Resample, APartOfAnExtremeImageFallsBackToTheCentre) {
  EXPECT_EQ(choose_frame(framing(Framing::Kind::resized, 0, 0), 3, 1000, 256, 224).source, (Box{0, 498, 3, 4}));
  EXPECT_EQ(choose_frame(framing(Framing::Kind::resized, 0, 0), 1000, 3, 256, 224).source, (Box{498, 0, 4, 3}));
}

TEST(Resample, FramesDependOnSeedEpochAndSampleOnly) {
  for (const Framing::Kind kind : {Framing::Kind::random, Framing::Kind::resized}) {
    const auto frame = [kind](std::uint64_t epoch, std::uint64_t sample) {
      return choose_frame(framing(kind, epoch, sample), 500, 375, 256, 224);
    };
    EXPECT_EQ(frame(1, 2), frame(1, 2));
    EXPECT_NE(frame(1, 2), frame(2, 2));
    EXPECT_NE(frame(1, 2), frame(1, 3));
  }
}

}  // namespace
}  // namespace tessera
