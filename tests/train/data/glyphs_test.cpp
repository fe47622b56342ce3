#include "train/data/glyphs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/rng.h"
#include "core/support/error.h"
#include "train/data/transforms.h"

namespace tessera {
namespace {

constexpr std::size_t kPixels = kGlyphSide * kGlyphSide;

// Softmax regression by plain gradient descent, one sample at a time. It comes close to the best linear model.
class LinearModel {
 public:
  void train(const MemoryDataset& data, const std::vector<float>& inputs, int epochs) {
    for (int epoch = 0; epoch < epochs; ++epoch) {
      const float rate = 0.002f / static_cast<float>(1 + epoch);
      for (const std::int64_t i : random_permutation({1, "test", "order"}, static_cast<std::uint64_t>(epoch), data.size())) {
        step(inputs.data() + static_cast<std::size_t>(i) * kPixels, static_cast<std::size_t>(i % kGlyphClasses), rate);
      }
    }
  }
  double accuracy(const MemoryDataset& data, const std::vector<float>& inputs) const {
    std::int64_t right = 0;
    for (std::int64_t i = 0; i < data.size(); ++i) {
      const Scores scores = forward(inputs.data() + static_cast<std::size_t>(i) * kPixels);
      right += std::ranges::max_element(scores) - scores.begin() == i % kGlyphClasses;
    }
    return static_cast<double>(right) / static_cast<double>(data.size());
  }

 private:
  using Scores = std::array<float, kGlyphClasses>;

  Scores forward(const float* x) const {
    Scores scores{};
    for (std::size_t k = 0; k < scores.size(); ++k) {
      scores[k] = weight_[k][kPixels];
      for (std::size_t i = 0; i < kPixels; ++i) scores[k] += weight_[k][i] * x[i];
    }
    return scores;
  }
  void step(const float* x, std::size_t label, float rate) {
    Scores scores = forward(x);
    const float top = *std::ranges::max_element(scores);
    float sum = 0;
    for (float& score : scores) sum += score = std::exp(score - top);
    for (std::size_t k = 0; k < scores.size(); ++k) {
      const float slope = rate * (scores[k] / sum - (k == label ? 1.0f : 0.0f));
      for (std::size_t i = 0; i < kPixels; ++i) weight_[k][i] -= slope * x[i];
      weight_[k][kPixels] -= slope;
    }
  }

  std::array<std::array<float, kPixels + 1>, kGlyphClasses> weight_{};
};

std::vector<float> normalized(const MemoryDataset& data, const Normalization& normalization) {
  std::vector<float> out(static_cast<std::size_t>(data.images.numel()));
  NormalizationTable(normalization, 1).apply({data.images.data<std::uint8_t>(), out.size()}, out.data());
  return out;
}

TEST(Glyphs, AnImageIsAFunctionOfSeedSplitAndIndex) {
  const auto pixels = make_glyphs(3, "train", 137).images.to_vector<std::uint8_t>();
  std::vector<std::uint8_t> image(kPixels);
  for (const std::int64_t index : {0, 10, 136}) {
    draw_glyph(3, "train", index, image);
    EXPECT_TRUE(std::equal(image.begin(), image.end(), pixels.begin() + index * static_cast<std::int64_t>(kPixels))) << index;
  }
  EXPECT_NE(pixels, make_glyphs(4, "train", 137).images.to_vector<std::uint8_t>());
  EXPECT_NE(pixels, make_glyphs(3, "test", 137).images.to_vector<std::uint8_t>());
  EXPECT_THROW(draw_glyph(3, "train", 0, std::span(image).first(7)), ShapeError);
}

TEST(Glyphs, ClassesAreBalanced) {
  const auto data = std::make_shared<const MemoryDataset>(make_glyphs(1, "train", 1003));
  check_dataset(*data);
  EXPECT_EQ(data->images.shape(), (Shape{1003, 28, 28, 1}));
  const auto counts = class_counts(all_of(data));
  ASSERT_EQ(counts.size(), 10u);
  for (std::size_t k = 0; k < 10; ++k) EXPECT_EQ(counts[k], k < 3 ? 101 : 100);
  EXPECT_EQ(make_glyphs(1, "train", 0).size(), 0);
}

TEST(Glyphs, ALinearModelLearnsAndStaysFarFromSolvingThem) {
  const auto train = std::make_shared<const MemoryDataset>(make_glyphs(1, "train", 6000));
  const MemoryDataset test = make_glyphs(1, "test", 1000);
  const Normalization normalization = measure_normalization(all_of(train));
  LinearModel model;
  model.train(*train, normalized(*train, normalization), 8);
  const double accuracy = model.accuracy(test, normalized(test, normalization));
  RecordProperty("accuracy", std::to_string(accuracy));
  EXPECT_GT(accuracy, 0.45);
  EXPECT_LT(accuracy, 0.75);
}

}  // namespace
}  // namespace tessera
