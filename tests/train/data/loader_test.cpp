#include "train/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/support/error.h"
#include "train/data/glyphs.h"

namespace tessera {
namespace {

// Labels are the sample numbers, so that a batch tells what it drew.
std::shared_ptr<const MemoryDataset> numbered(std::int64_t count) {
  auto data = std::make_shared<MemoryDataset>(make_glyphs(5, "train", count));
  for (std::int64_t i = 0; i < count; ++i) data->labels.data<std::int64_t>()[i] = i;
  return data;
}

LoaderOptions options(int threads) {
  LoaderOptions o;
  o.batch = 5;
  o.augment = {{.pad_crop = 3}, {.flip = "horizontal"}, {.cutout = 7}};
  o.normalization = {{0.25}, {0.5}};
  o.seed = 11;
  o.threads = threads;
  o.prefetch = 3;
  return o;
}

void expect_equal(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.x.shape(), b.x.shape());
  EXPECT_EQ(a.x.to_vector<float>(), b.x.to_vector<float>());
  EXPECT_EQ(a.y.to_vector<std::int64_t>(), b.y.to_vector<std::int64_t>());
}

std::vector<std::int64_t> labels_of_epoch(Loader& loader) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const auto y = loader.next().y.to_vector<std::int64_t>();
    labels.insert(labels.end(), y.begin(), y.end());
  }
  return labels;
}

TEST(Loader, EachEpochIsAnotherPermutation) {
  LoaderOptions o = options(2);
  o.drop_last = false;
  Loader loader(all_of(numbered(23)), o);
  EXPECT_EQ(loader.batches_per_epoch(), 5);
  std::vector<std::int64_t> first = labels_of_epoch(loader);
  std::vector<std::int64_t> second = labels_of_epoch(loader);
  EXPECT_EQ(loader.epoch(), 2);
  EXPECT_NE(first, second);
  std::ranges::sort(first);
  std::ranges::sort(second);
  EXPECT_EQ(first, all_of(numbered(23)).indices);
  EXPECT_EQ(first, second);
}

TEST(Loader, DropLastKeepsFullBatchesOnly) {
  Loader loader(all_of(numbered(23)), options(0));
  EXPECT_EQ(loader.batches_per_epoch(), 4);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(loader.next().x.shape(), (Shape{5, 28, 28, 1}));
  EXPECT_EQ(loader.epoch(), 2);
  EXPECT_EQ(loader.batch(), 1);
}

TEST(Loader, ThreadsChangeNoByte) {
  Loader inline_loader(all_of(numbered(23)), options(0));
  Loader one(all_of(numbered(23)), options(1));
  Loader four(all_of(numbered(23)), options(4));
  for (int i = 0; i < 11; ++i) {
    const Batch expected = inline_loader.next();
    expect_equal(expected, one.next());
    expect_equal(expected, four.next());
  }
}

TEST(Loader, StartsInTheMiddleOfAnEpoch) {
  Loader straight(all_of(numbered(23)), options(0));
  std::vector<Batch> batches;
  for (int i = 0; i < 12; ++i) batches.push_back(straight.next());
  Loader resumed(all_of(numbered(23)), options(2));
  for (const std::size_t from : {6u, 3u, 9u}) {
    resumed.seek(static_cast<std::int64_t>(from) / 4, static_cast<std::int64_t>(from) % 4);
    for (std::size_t i = from; i < 12; ++i) expect_equal(batches[i], resumed.next());
  }
  EXPECT_THROW(resumed.seek(0, 4), InternalError);
}

TEST(Loader, EvaluationCoversEverythingInOrder) {
  const auto data = numbered(13);
  Loader loader(all_of(data), evaluation_options(5, {{0.0}, {1.0}}, 2));
  EXPECT_EQ(labels_of_epoch(loader), all_of(data).indices);
  EXPECT_EQ(labels_of_epoch(loader), all_of(data).indices);
  loader.seek(0, 2);
  const Batch last = loader.next();
  EXPECT_EQ(last.x.shape(), (Shape{3, 28, 28, 1}));
  EXPECT_EQ(last.x.to_vector<float>()[0], static_cast<float>(data->images.to_vector<std::uint8_t>()[10 * 784] / 255.0));
}

TEST(Loader, WorkersFailuresReachTheCaller) {
  Subset subset = all_of(numbered(23));
  for (const int threads : {0, 2}) {
    LoaderOptions o = options(threads);
    o.batch = 23;
    o.augment.clear();
    set_memory_limit({}, 1);  // no batch can be allocated
    Loader loader(subset, o);
    EXPECT_THROW(loader.next(), OutOfMemoryError);
    EXPECT_THROW(loader.next(), OutOfMemoryError);
    set_memory_limit({}, 0);
  }
}

TEST(Loader, StopsAtAnyTime) {
  for (int taken = 0; taken < 6; ++taken) {
    Loader loader(all_of(numbered(23)), options(3));
    for (int i = 0; i < taken; ++i) loader.next();
  }
}

TEST(Loader, RefusesABatchLargerThanTheData) {
  try {
    Loader loader(all_of(numbered(4)), options(0));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "data.batch is 5 but glyphs has 4 samples to draw from; drop_last leaves no batch");
  }
}

TEST(Loader, AnEmptySubsetHasNoBatches) {
  Subset empty = all_of(numbered(4));
  empty.indices.clear();
  Loader loader(empty, evaluation_options(5, {{0.0}, {1.0}}, 2));
  EXPECT_EQ(loader.batches_per_epoch(), 0);
  EXPECT_THROW(loader.next(), InternalError);
}

}  // namespace
}  // namespace tessera
