#include "train/data/image_dataset.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/support/error.h"
#include "train/data/glyphs.h"

namespace tessera {
namespace {

std::shared_ptr<const ImageDataset> uneven() {  // 11 of class 0, 5 of class 1, 1 of class 2, none of class 3
  std::vector<std::int64_t> labels(17, 0);
  for (const std::size_t i : {1u, 4u, 7u, 10u, 16u}) labels[i] = 1;
  labels[5] = 2;
  auto data = std::make_shared<MemoryDataset>();
  data->name = "uneven";
  data->images = Tensor::zeros({17, 1, 2, 1}, DType::u8);
  data->labels = Tensor::from(labels, {17});
  data->classes = {"a", "b", "c", "d"};
  return data;
}

TEST(ImageDataset, SplitHoldsOutOfEachClassAndLosesNothing) {
  const TrainVal split = split_validation(uneven(), 0.2, 7);
  EXPECT_EQ(class_counts(split.val), (std::vector<std::int64_t>{2, 1, 0, 0}));
  EXPECT_EQ(class_counts(split.train), (std::vector<std::int64_t>{9, 4, 1, 0}));
  std::vector<std::int64_t> both = split.train.indices;
  both.insert(both.end(), split.val.indices.begin(), split.val.indices.end());
  std::ranges::sort(both);
  EXPECT_EQ(both, all_of(uneven()).indices);
  EXPECT_TRUE(std::ranges::is_sorted(split.train.indices));
}

TEST(ImageDataset, SplitIsAFunctionOfTheSeed) {
  const auto data = std::make_shared<const MemoryDataset>(make_glyphs(1, "train", 200));
  const auto held = [&](std::uint64_t seed) { return split_validation(data, 0.1, seed).val.indices; };
  EXPECT_EQ(held(3), held(3));
  EXPECT_NE(held(3), held(4));
  EXPECT_EQ(held(3).size(), 20u);
}

TEST(ImageDataset, SplitOfNothingLeavesValEmpty) {
  EXPECT_EQ(split_validation(uneven(), 0.0, 7).val.size(), 0);
  EXPECT_THROW(split_validation(uneven(), 1.0, 7), ConfigError);
}

TEST(ImageDataset, FingerprintSeesPixelsLabelsAndShape) {
  MemoryDataset data = make_glyphs(1, "train", 20);
  const std::string first = fingerprint(data);
  EXPECT_EQ(first.size(), 32u);
  EXPECT_EQ(first, fingerprint(make_glyphs(1, "train", 20)));
  data.images.data<std::uint8_t>()[777] ^= 1;
  EXPECT_NE(first, fingerprint(data));
  data.images.data<std::uint8_t>()[777] ^= 1;
  data.labels.data<std::int64_t>()[3] = 0;
  EXPECT_NE(first, fingerprint(data));
  data = make_glyphs(1, "train", 20);
  data.images = data.images.reshape({20, 14, 56, 1});
  EXPECT_NE(first, fingerprint(data));
}

TEST(ImageDataset, CheckNamesTheSampleOfABadLabel) {
  MemoryDataset data = make_glyphs(1, "train", 20);
  data.labels.data<std::int64_t>()[13] = -1;
  try {
    check_dataset(data);
    FAIL();
  } catch (const IoError& error) {
    EXPECT_STREQ(error.what(), "dataset glyphs: label of sample 13 is -1; must be in 0..9");
  }
  data.labels = Tensor::zeros({19}, DType::i64);
  EXPECT_THROW(check_dataset(data), ShapeError);
}

}  // namespace
}  // namespace tessera
