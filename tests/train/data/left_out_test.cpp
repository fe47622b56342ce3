// A run goes on without images that it leaves out. Everything else of its data stays the same.
#include "train/data/left_out.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "core/support/error.h"
#include "core/support/log.h"
#include "tests/support/message_of.h"
#include "tests/support/scopes.h"
#include "tests/train/data/small_folder.h"
#include "train/data/builtin.h"
#include "train/data/data_check.h"
#include "train/data/stand_ins.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class LeftOut : public testing::SmallFolder {
 protected:
  void SetUp() override {
    SmallFolder::SetUp();
    folder_.mean = Value::list({0.5, 0.5, 0.5});
    folder_.std = Value::list({0.5, 0.5, 0.5});
    folder_.val = 0;
    set_log_sink([this](LogLevel, std::string_view text) { warnings_ += str(text, '\n'); });
  }

  void truncate(const std::string& name) const { fs::resize_file(path(name), 80); }
  std::vector<BrokenImage> broken() const { return folder_.undecodable_images(config_.root); }
  void leave_out(const std::vector<BrokenImage>& images) {
    folder_.on_bad_image = "skip";
    folder_.left_out.emplace(images.begin(), images.end());
  }
  DataSplits load() const { return load_data(config_, 1); }
  std::vector<float> first_epochs(const DataSplits& data, int epochs) const {
    Loader loader(data.train, training_options(config_, 5, 2));
    std::vector<float> all;
    for (std::int64_t i = 0; i < epochs * loader.batches_per_epoch(); ++i) {
      const auto x = loader.next().at("image").to_vector<float>();
      all.insert(all.end(), x.begin(), x.end());
    }
    return all;
  }

  std::string warnings_;
};

TEST_F(LeftOut, AFileThatCannotBeDecodedIsToldAsItWasListed) {
  const DataSplits data = load();
  truncate("train/dog/3.png");  // after the files were listed
  EXPECT_THROW(first_epochs(data, 1), IoError);
  const std::vector<BrokenImage> met = data.train.dataset->met_broken();
  ASSERT_EQ(met.size(), 1u);
  EXPECT_EQ(met[0].file, "train/dog/3.png");
  EXPECT_EQ(met[0].reason, "broken PNG: the file ends early");
  EXPECT_EQ(met[0].path(config_.root), path("train/dog/3.png"));
  EXPECT_GT(met[0].bytes, 80);
  EXPECT_EQ(state_of(met[0], config_.root), ImageState::another_file);
  const std::vector<BrokenImage> now = broken();
  ASSERT_EQ(now.size(), 1u);
  EXPECT_EQ(now[0].file, met[0].file);
  EXPECT_EQ(now[0].bytes, 80);
  EXPECT_EQ(state_of(now[0], config_.root), ImageState::undecodable);
  images_.add("train/dog/3.png", 128 + 3, 15, 12);
  EXPECT_EQ(state_of(met[0], config_.root), ImageState::whole);
  fs::remove(path("train/dog/3.png"));
  EXPECT_EQ(state_of(met[0], config_.root), ImageState::gone);
}

TEST_F(LeftOut, WhateverBecomesOfTheFileTheDataIsTheSame) {
  images_.add("train/cat/a/x.png", 70);
  images_.add("train/cat/a.png", 71);  // listed after a/x.png: paths compare name by name, although '.' is before '/'
  for (const char* name : {"train/cat/a/x.png", "train/cat/a.png", "train/cat/9.png", "train/dog/0.png"}) {
    const DataSplits whole = load();
    const std::string bytes = [&] {
      std::ifstream in(path(name), std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    }();
    LeftOutImage image;
    {
      const DataSplits data = load();
      truncate(name);
      EXPECT_THROW(first_epochs(data, 1), IoError);
      image = data.train.dataset->met_broken().at(0);
    }
    folder_.on_bad_image = "skip";
    folder_.left_out = {image};
    const auto same = [&] {
      const DataSplits data = load();
      EXPECT_EQ(manifest_keys(data), manifest_keys(whole)) << name;
      EXPECT_EQ(data.train.indices, whole.train.indices);
      EXPECT_EQ(data.train.dataset->origin(5), whole.train.dataset->origin(5));
    };
    same();
    fs::remove(path(name));
    same();
    images_.write(name, "no image");
    same();
    images_.write(name, bytes);
    same();
    folder_.on_bad_image = {};
    folder_.left_out = {};
  }
}

TEST_F(LeftOut, AnotherImageOfItsClassStandsInAndNothingElseChanges) {
  const std::vector<float> whole = first_epochs(load(), 3);
  truncate("train/dog/3.png");
  leave_out(broken());
  const DataSplits data = load();
  EXPECT_NE(warnings_.find(path("train") + ": goes on without 1 file:\n  " + path("train/dog/3.png")), std::string::npos)
      << warnings_;
  const std::vector<float> without = first_epochs(data, 3);
  EXPECT_EQ(first_epochs(load(), 3), without);
  constexpr std::size_t kSample = 8 * 8 * 3;
  ASSERT_EQ(without.size(), whole.size());
  const auto sample = [](const std::vector<float>& all, std::size_t i) {
    return std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(i * kSample),
                              all.begin() + static_cast<std::ptrdiff_t>((i + 1) * kSample));
  };
  std::size_t others = 0;
  for (std::size_t i = 0; i < whole.size() / kSample; ++i) others += sample(whole, i) == sample(without, i) ? 0 : 1;
  EXPECT_EQ(others, 3u) << "one place of each epoch";
}

TEST_F(LeftOut, AStandInIsDrawnFromTheTrainingImagesOfTheClass) {
  truncate("train/dog/3.png");
  leave_out(broken());
  folder_.val = 0.3;
  const ImageSplits data = load_images(config_, 1);
  const std::vector<std::int64_t>& training = data.train.indices;
  const auto is_out = [&](std::int64_t sample) { return data.train.images->is_left_out(sample); };
  EXPECT_EQ(std::ranges::count_if(training, is_out) + (6 - data.val.size()), 1) << "in one of the two";
  EXPECT_EQ(std::ranges::count_if(data.val.indices, is_out), 0);
  folder_.val = 0;
  const ImageSplits all = load_images(config_, 1);
  const StandIns stand_ins(all.train, 7);
  const std::int64_t* const labels = all.train.images->labels.data<std::int64_t>();
  std::set<std::int64_t> drawn;
  for (const std::int64_t sample : all.train.indices) {
    for (std::int64_t epoch = 0; epoch < 60; ++epoch) {
      const std::int64_t read = stand_ins.of(sample, epoch);
      EXPECT_EQ(StandIns(all.train, 7).of(sample, epoch), read);
      EXPECT_FALSE(is_out(read));
      EXPECT_EQ(labels[read], labels[sample]);
      if (is_out(sample)) {
        drawn.insert(read);
      } else {
        EXPECT_EQ(read, sample);
      }
    }
  }
  EXPECT_EQ(drawn.size(), 9u) << "every other dog";
}

TEST_F(LeftOut, AClassNeedsOneImageToStandIn) {
  for (int i = 0; i < 10; ++i) truncate(str("train/dog/", i, ".png"));
  leave_out(broken());
  ASSERT_EQ(folder_.left_out->size(), 10u);
  EXPECT_NE(message_of([&] { load(); }).find(path("train/dog") + ": the class folder has no readable image: 10 files:"),
            std::string::npos);
  images_.add("train/dog/3.png", 7);
  folder_.left_out->erase(folder_.left_out->begin() + 3);
  EXPECT_EQ(class_counts(load_images(config_, 1).train), (std::vector<std::int64_t>{10, 10}));
  // The validation split may hold out the only image that is left of a class.
  folder_.val = 0.5;
  std::string message;
  for (std::uint64_t seed = 1; seed < 20 && message.empty(); ++seed) {
    try {
      load_data(config_, seed);
    } catch (const IoError& error) {
      message = error.what();
    }
  }
  EXPECT_NE(message.find(": class 'dog' has no image left to train on"), std::string::npos) << message;
}

TEST_F(LeftOut, StatisticsAndEvaluationsDoWithoutIt) {
  folder_.mean = folder_.std = "auto";
  truncate("train/dog/3.png");
  truncate("test/cat/1.png");
  leave_out(broken());
  const ImageSplits data = load_images(config_, 1);
  EXPECT_EQ(data.test.size(), 5);
  EXPECT_EQ(data.train.size(), 20);
  fs::remove(path("train/dog/3.png"));
  folder_.left_out = {};
  EXPECT_EQ(load_images(config_, 1).normalization.mean, data.normalization.mean);
}

// The cache must not apply results for one set of files to another set.
TEST_F(LeftOut, TheCacheDoesNotTakeItForAGoodOne) {
  const testing::VariableScope kept_in("TESSERA_CACHE", path("cache/images"));
  truncate("train/dog/3.png");
  leave_out(broken());
  EXPECT_EQ(load_images(config_, 1).train.size(), 20);
  folder_.left_out = {};
  EXPECT_EQ(load_images(config_, 1).train.size(), 19);
  leave_out(broken());
  EXPECT_EQ(load_images(config_, 1).train.size(), 20);
}

TEST_F(LeftOut, ACheckOfTheDataStillFindsIt) {
  truncate("train/dog/3.png");
  leave_out(broken());
  EXPECT_EQ(check_data(config_, 1).bad.size(), 1u);
}

TEST_F(LeftOut, NamesAnImageOfASplitOnce) {
  truncate("train/dog/3.png");
  std::vector<BrokenImage> images = broken();
  images.push_back(images[0]);
  leave_out(images);
  EXPECT_EQ(message_of<ConfigError>([&] { load(); }), "data.left_out: train/dog/3.png stands there twice");
  images.pop_back();
  images[0].file = "training/dog/3.png";
  leave_out(images);
  EXPECT_EQ(message_of<ConfigError>([&] { load(); }), "data.left_out: training/dog/3.png lies in no folder of a split");
}

}  // namespace
}  // namespace tessera
