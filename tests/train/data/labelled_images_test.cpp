#include "train/data/labelled_images.h"

#include <gtest/gtest.h>

#include "train/data/glyphs.h"

namespace tessera {
namespace {

const Normalization kHalf{{0.25}, {0.5}};

std::shared_ptr<const MemoryDataset> glyphs() { return std::make_shared<const MemoryDataset>(make_glyphs(5, "train", 20)); }

Batch assembled(const LabelledImages& data, const std::vector<std::int64_t>& samples, std::optional<std::int64_t> epoch) {
  const Batch batch = Batch::empty(data.fields(), static_cast<std::int64_t>(samples.size()));
  data.assemble(samples, epoch, batch);
  return batch;
}

TEST(LabelledImages, WithoutAnEpochSamplesAreNormalisedBytes) {
  const auto images = glyphs();
  const LabelledImages data(images, kHalf, {{.flip = "horizontal"}}, 3);
  const Batch batch = assembled(data, {7, 2}, std::nullopt);
  EXPECT_EQ(batch.at("label").to_vector<std::int64_t>(), (std::vector<std::int64_t>{7, 2}));
  const auto pixels = images->images.to_vector<std::uint8_t>();
  const auto image = batch.at("image").to_vector<float>();
  for (std::size_t i = 0; i < 784; ++i) {
    ASSERT_EQ(image[i], static_cast<float>((pixels[7 * 784 + i] / 255.0 - 0.25) / 0.5));
    ASSERT_EQ(image[784 + i], static_cast<float>((pixels[2 * 784 + i] / 255.0 - 0.25) / 0.5));
  }
}

TEST(LabelledImages, AnAugmentedSampleIsAFunctionOfItsEpochAndNumber) {
  const LabelledImages data(glyphs(), kHalf, {{.pad_crop = 3}}, 3);
  const auto image = [&](std::vector<std::int64_t> samples, std::int64_t epoch, std::int64_t at) {
    return assembled(data, samples, epoch).at("image").slice(0, at, at + 1).to_vector<float>();
  };
  EXPECT_EQ(image({4, 9}, 1, 1), image({9}, 1, 0));
  EXPECT_NE(image({9}, 1, 0), image({9}, 2, 0));
}

TEST(LabelledImages, DescribesItsClasses) {
  const auto images = glyphs();
  const LabelledImages data(images, kHalf);
  EXPECT_EQ(class_names(data.description()), images->classes);
  EXPECT_EQ(data.fingerprint(), fingerprint(*images));
  EXPECT_EQ(data.fields(), (std::vector<Field>{{"image", DType::f32, {28, 28, 1}}, {"label", DType::i64, {}}}));
  EXPECT_EQ(sample_shape(data), (Shape{1, 28, 28, 1}));
}

}  // namespace
}  // namespace tessera
