#include "train/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "core/support/error.h"
#include "tests/support/message_of.h"
#include "train/data/glyphs.h"
#include "train/data/labelled_images.h"

namespace tessera {
namespace {

std::shared_ptr<const MemoryDataset> images(std::int64_t count) {
  auto data = std::make_shared<MemoryDataset>(make_glyphs(5, "train", count));
  for (std::int64_t i = 0; i < count; ++i) data->labels.data<std::int64_t>()[i] = i;
  return data;
}

// The label of a sample is its number, so that a batch shows which samples it drew.
std::shared_ptr<const Dataset> numbered(std::int64_t count) {
  const std::vector<AugmentConfig> augment{{.pad_crop = 3}, {.flip = "horizontal"}, {.cutout = 7}};
  return std::make_shared<LabelledImages>(images(count), Normalization{{0.25}, {0.5}}, augment, 11);
}

LoaderOptions options(int threads) {
  LoaderOptions o;
  o.batch = 5;
  o.seed = 11;
  o.threads = threads;
  o.prefetch = 3;
  return o;
}

void expect_equal(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.at("image").shape(), b.at("image").shape());
  EXPECT_EQ(a.at("image").to_vector<float>(), b.at("image").to_vector<float>());
  EXPECT_EQ(a.at("label").to_vector<std::int64_t>(), b.at("label").to_vector<std::int64_t>());
}

std::vector<std::int64_t> labels_of_epoch(Loader& loader) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const auto y = loader.next().at("label").to_vector<std::int64_t>();
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
  for (int i = 0; i < 9; ++i) EXPECT_EQ(loader.next().at("image").shape(), (Shape{5, 28, 28, 1}));
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

// The shares in their order are equal to the whole batch, augmentations included.
TEST(Loader, SharesOfABatchAreTheBatch) {
  for (const bool drop_last : {true, false}) {
    LoaderOptions whole = options(0);
    whole.batch = 6;
    whole.drop_last = drop_last;
    Loader loader(all_of(numbered(27)), whole);
    std::vector<std::unique_ptr<Loader>> shares;
    for (int share = 0; share < 3; ++share) {
      LoaderOptions o = whole;
      o.share = share;
      o.shares = 3;
      o.threads = share;
      shares.push_back(std::make_unique<Loader>(all_of(numbered(27)), o));
      EXPECT_EQ(shares.back()->batches_per_epoch(), loader.batches_per_epoch());
    }
    for (std::int64_t i = 0; i < 2 * loader.batches_per_epoch(); ++i) {
      const Batch batch = loader.next();
      const std::int64_t share = batch.samples() / 3;
      for (std::int64_t r = 0; r < 3; ++r) {
        expect_equal(shares[static_cast<std::size_t>(r)]->next(), batch.slice(r * share, (r + 1) * share));
      }
    }
  }
}

TEST(Loader, RefusesBatchesWithoutEqualShares) {
  const auto refusal = [](std::int64_t batch, std::int64_t samples, bool drop_last) {
    LoaderOptions o = options(0);
    o.batch = batch;
    o.drop_last = drop_last;
    o.shares = 3;
    return message_of<ConfigError>([&] { Loader(all_of(numbered(samples)), o); });
  };
  EXPECT_EQ(refusal(5, 27, true), "data.batch is 5; 3 ranks cannot share it equally");
  EXPECT_EQ(refusal(6, 28, false),
            "data.drop_last is false, and the last batch of an epoch has 4 samples; 3 ranks cannot share it equally");
}

TEST(Loader, EvaluationCoversEverythingInOrder) {
  const auto data = numbered(13);
  Loader loader(all_of(data), evaluation_options(5, 2));
  EXPECT_EQ(labels_of_epoch(loader), all_of(data).indices);
  EXPECT_EQ(labels_of_epoch(loader), all_of(data).indices);
  loader.seek(0, 2);
  const Batch last = loader.next();
  EXPECT_EQ(last.at("image").shape(), (Shape{3, 28, 28, 1}));
  EXPECT_EQ(last.at("image").to_vector<float>()[0],
            static_cast<float>((images(13)->images.to_vector<std::uint8_t>()[10 * 784] / 255.0 - 0.25) / 0.5));
}

TEST(Loader, WorkersFailuresReachTheCaller) {
  Subset subset = all_of(numbered(23));
  for (const int threads : {0, 2}) {
    LoaderOptions o = options(threads);
    o.batch = 23;
    set_memory_limit({}, 1);  // no batch can be allocated
    Loader loader(subset, o);
    EXPECT_THROW(loader.next(), OutOfMemoryError);
    EXPECT_THROW(loader.next(), OutOfMemoryError);
    set_memory_limit({}, 0);
  }
}

// Slow samples that count the assemblies begun and ended.
class SlowSamples final : public Dataset {
 public:
  explicit SlowSamples(std::shared_ptr<const Dataset> samples) : samples_(std::move(samples)) {}

  std::string_view name() const override { return samples_->name(); }
  std::int64_t size() const override { return samples_->size(); }
  const std::vector<Field>& fields() const override { return samples_->fields(); }
  std::size_t bytes() const override { return samples_->bytes(); }
  void assemble(std::span<const std::int64_t> samples, std::optional<std::int64_t> epoch, const Batch& out) const override {
    ++begun_;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    samples_->assemble(samples, epoch, out);
    ++ended_;
  }
  std::string fingerprint() const override { return samples_->fingerprint(); }
  Value description() const override { return samples_->description(); }
  std::string origin(std::int64_t index) const override { return samples_->origin(index); }

  std::int64_t begun() const { return begun_; }
  std::int64_t ended() const { return ended_; }

 private:
  std::shared_ptr<const Dataset> samples_;
  mutable std::atomic<std::int64_t> begun_{0};
  mutable std::atomic<std::int64_t> ended_{0};
};

// Stops with none, some or all prefetched batches assembled. A begun assembly is waited for, and none begins afterwards.
TEST(Loader, StopsAtAnyTime) {
  for (int taken = 0; taken < 6; ++taken) {
    SCOPED_TRACE(taken);
    const auto samples = std::make_shared<SlowSamples>(numbered(23));
    std::vector<std::int64_t> labels;
    {
      Loader loader(all_of(samples), options(3));
      for (int i = 0; i < taken; ++i) {
        const auto batch = loader.next().at("label").to_vector<std::int64_t>();
        labels.insert(labels.end(), batch.begin(), batch.end());
      }
    }
    const std::int64_t begun = samples->begun();
    EXPECT_EQ(samples->ended(), begun);
    EXPECT_GE(begun, taken);
    std::this_thread::sleep_for(std::chrono::milliseconds(6));
    EXPECT_EQ(samples->begun(), begun);
    Loader straight(all_of(numbered(23)), options(0));
    std::vector<std::int64_t> expected;
    for (int i = 0; i < taken; ++i) {
      const auto batch = straight.next().at("label").to_vector<std::int64_t>();
      expected.insert(expected.end(), batch.begin(), batch.end());
    }
    EXPECT_EQ(labels, expected);
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

// Tokens of a text, as for a language model: no image, no label, another dtype, and one field that depends on the epoch.
class Tokens final : public Dataset {
 public:
  std::string_view name() const override { return "tokens"; }
  std::int64_t size() const override { return 7; }
  const std::vector<Field>& fields() const override { return fields_; }
  std::size_t bytes() const override { return 0; }
  void assemble(std::span<const std::int64_t> samples, std::optional<std::int64_t> epoch, const Batch& out) const override {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      for (std::size_t k = 0; k < 3; ++k) {
        out.at("tokens").data<std::int64_t>()[3 * i + k] = 10 * samples[i] + static_cast<std::int64_t>(k);
      }
      out.at("epoch").data<std::int32_t>()[i] = static_cast<std::int32_t>(epoch.value_or(-1));
    }
  }
  std::string fingerprint() const override { return "tokens"; }
  Value description() const override { return Value::map(); }
  std::string origin(std::int64_t index) const override { return str("tokens[", index, ']'); }

 private:
  std::vector<Field> fields_{{"tokens", DType::i64, {3}}, {"epoch", DType::i32, {}}};
};

TEST(Loader, KnowsNothingOfImages) {
  LoaderOptions o = options(2);
  o.batch = 3;
  o.shuffle = false;
  o.drop_last = false;
  Loader loader(all_of(std::make_shared<Tokens>()), o);
  loader.seek(4, 2);
  const Batch last = loader.next();
  EXPECT_EQ(last.fields(), Tokens().fields());
  EXPECT_EQ(last.input().to_vector<std::int64_t>(), (std::vector<std::int64_t>{60, 61, 62}));
  EXPECT_EQ(last.at("epoch").to_vector<std::int32_t>(), std::vector<std::int32_t>{4});
  Loader evaluated(all_of(std::make_shared<Tokens>()), evaluation_options(7, 0));
  EXPECT_EQ(evaluated.next().at("epoch").to_vector<std::int32_t>(), std::vector<std::int32_t>(7, -1));
}

TEST(Loader, AnEmptySubsetHasNoBatches) {
  Subset empty = all_of(numbered(4));
  empty.indices.clear();
  Loader loader(empty, evaluation_options(5, 2));
  EXPECT_EQ(loader.batches_per_epoch(), 0);
  EXPECT_THROW(loader.next(), InternalError);
}

}  // namespace
}  // namespace tessera
