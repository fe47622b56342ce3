#include "train/data/image_folder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <random>
#include <set>

#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "tests/support/message_of.h"
#include "tests/support/scopes.h"
#include "tests/train/data/small_folder.h"
#include "train/data/builtin.h"
#include "train/data/image.h"
#include "train/data/resample.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class ImageFolderTest : public testing::SmallFolder {
 protected:
  std::string error() const {
    return message_of([&] { load_data(config_, 1); });
  }
};

TEST_F(ImageFolderTest, ClassesAreTheSortedFolders) {
  images_.add("train/ant/deep/er/x.png", 1);
  images_.add("test/ant/y.png", 2);
  images_.write("train/.DS_Store", "litter");
  images_.write("train/cat/.hidden.png", "litter");
  images_.write("train/cat/Thumbs.db", "litter");
  images_.write("train/README.txt", "about");
  const ImageSplits data = load_images(config_, 1);
  EXPECT_EQ(data.train.images->classes, (std::vector<std::string>{"ant", "cat", "dog"}));
  EXPECT_EQ(class_counts(all_of(data.train.images)), (std::vector<std::int64_t>{1, 10, 10}));
  EXPECT_EQ(data.train.images->origin(0), path("train/ant/deep/er/x.png"));
  EXPECT_EQ(data.train.images->sample_shape(), (Shape{8, 8, 3}));
  EXPECT_EQ(data.test.images->classes, data.train.images->classes);
}

TEST_F(ImageFolderTest, ValidationIsAShareOfEachClassOrAFolder) {
  folder_.val = 0.2;
  ImageSplits data = load_images(config_, 1);
  EXPECT_EQ(class_counts(data.val), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(data.train.size(), 16);
  EXPECT_EQ(data.train.images, data.val.images);
  images_.add_split("valid", 2, 70);
  folder_.val = "valid";
  data = load_images(config_, 1);
  EXPECT_EQ(data.train.size(), 20);
  EXPECT_EQ(class_counts(data.val), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(data.val.images->origin(3), path("valid/dog/1.png"));
}

TEST_F(ImageFolderTest, ASampleIsTheResizedCentre) {
  const ImageSplits data = load_images(config_, 1);
  std::vector<std::uint8_t> sample(8 * 8 * 3);
  data.train.images->read(0, {}, sample);
  const Image image = read_image(path("train/cat/0.png"));
  std::vector<std::uint8_t> expected(8 * 8 * 3);
  resample(image, choose_frame({}, 12, 15, 10, 8), 8, expected);
  EXPECT_EQ(sample, expected);
}

TEST_F(ImageFolderTest, StatisticsAreThoseOfTheTrainingSamples) {
  folder_.val = 0;
  const ImageSplits data = load_images(config_, 1);
  std::vector<std::uint8_t> sample(8 * 8 * 3);
  double red = 0;
  double green = 0;
  for (std::int64_t i = 0; i < 20; ++i) {
    data.train.images->read(i, {}, sample);
    for (std::size_t at = 0; at < sample.size(); at += 3) red += sample[at], green += sample[at + 1];
  }
  EXPECT_NEAR(data.normalization.mean[0], red / (20 * 64 * 255), 1e-12);
  EXPECT_NEAR(data.normalization.mean[1], green / (20 * 64 * 255), 1e-12);
  EXPECT_EQ(load_images(config_, 2).normalization.stddev, data.normalization.stddev);
  // A large set measures evenly spread samples, here every fifth.
  double fifth = 0;
  for (std::int64_t i = 0; i < 20; i += 5) {
    data.train.images->read(i, {}, sample);
    for (std::size_t at = 0; at < sample.size(); at += 3) fifth += sample[at];
  }
  EXPECT_NEAR(measure_normalization(data.train, 4).mean[0], fifth / (4 * 64 * 255), 1e-12);
}

TEST_F(ImageFolderTest, GivenStatisticsReadNoImage) {
  images_.write("train/cat/0.png", testing::encode_png(2, 2, testing::pattern(2, 2)).substr(0, 60));  // reading it would fail
  folder_.mean = Value::list({0.5, 0.25, 0.125});
  folder_.std = Value::list({0.5, 0.25, 0.125});
  EXPECT_EQ(load_images(config_, 1).normalization.mean, (std::vector<double>{0.5, 0.25, 0.125}));
  folder_.mean = Value::list({0.5});
  EXPECT_EQ(error(), "data.mean has 1 values; images have 3 channels");
}

std::vector<float> epochs(const DataSplits& data, const DataConfig& config, int threads, std::int64_t skip) {
  Loader loader(data.train, training_options(config, 5, threads));
  loader.seek(skip / loader.batches_per_epoch(), skip % loader.batches_per_epoch());
  std::vector<float> all;
  for (std::int64_t i = skip; i < 3 * loader.batches_per_epoch(); ++i) {
    const auto x = loader.next().at("image").to_vector<float>();
    all.insert(all.end(), x.begin(), x.end());
  }
  return all;
}

TEST_F(ImageFolderTest, ThreadsAndResumingChangeNoByte) {
  const std::vector<std::vector<AugmentConfig>> lists{
      {}, {{.crop = "random"}, {.flip = "horizontal"}}, {{.resized_crop = 0.3}, {.cutout = 3}}};
  std::set<std::vector<float>> different;
  for (const std::vector<AugmentConfig>& list : lists) {
    folder_.augment = list;
    const DataSplits data = load_data(config_, 1);
    const std::vector<float> expected = epochs(data, config_, 0, 0);
    different.insert(expected);
    EXPECT_EQ(epochs(data, config_, 1, 0), expected);
    EXPECT_EQ(epochs(data, config_, 4, 0), expected);
    const auto from = static_cast<std::ptrdiff_t>(6 * 4 * 8 * 8 * 3);  // batch 6 of 12, in the middle of an epoch
    EXPECT_EQ(epochs(load_data(config_, 1), config_, 2, 6), std::vector<float>(expected.begin() + from, expected.end()));
  }
  EXPECT_EQ(different.size(), 3u);
}

TEST_F(ImageFolderTest, ABrokenImageStopsTheLoaderAndIsNamed) {
  images_.write("train/dog/3.png", testing::encode_png(9, 9, testing::pattern(9, 9)).substr(0, 90));
  folder_.mean = Value::list({0.5, 0.5, 0.5});
  folder_.std = Value::list({0.5, 0.5, 0.5});
  folder_.val = 0;
  for (const int threads : {0, 2}) {
    const DataSplits data = load_data(config_, 1);
    Loader loader(data.train, training_options(config_, 1, threads));
    try {
      for (int i = 0; i < 5; ++i) loader.next();
      FAIL();
    } catch (const IoError& e) {
      EXPECT_EQ(std::string(e.what()), path("train/dog/3.png") +
                                           ": broken PNG: the file ends early; tessera data check lists all such files, "
                                           "data.on_bad_image: skip leaves them out of a new run, and tessera resume RUN "
                                           "data.on_bad_image=skip out of one that has begun");
    }
  }
}

TEST_F(ImageFolderTest, NamesAreUtf8) {
  images_.write("train/dog/z\xff.png", testing::encode_png(9, 9, testing::pattern(9, 9)));
  EXPECT_NE(error().find("/train/dog/z\xff.png: its name must be UTF-8"), std::string::npos) << error();
}

TEST_F(ImageFolderTest, SkipLeavesBadFilesOutAndWarns) {
  images_.write("train/dog/3.png", testing::encode_png(9, 9, testing::pattern(9, 9)).substr(0, 90));
  images_.write("train/cat/notes.txt", "no image");
  EXPECT_EQ(error(), path("train") + ": no readable images (data.on_bad_image: skip leaves them out), 1 file:\n  " +
                         path("train/cat/notes.txt") + ": not a JPEG or PNG file");
  folder_.on_bad_image = "skip";
  std::string warning;
  set_log_sink([&](LogLevel, std::string_view text) { warning = text; });
  const ImageSplits data = load_images(config_, 1);
  EXPECT_EQ(class_counts(all_of(data.train.images)), (std::vector<std::int64_t>{10, 9}));
  EXPECT_EQ(warning, path("train") + ": leaves out 2 files:\n  " + path("train/cat/notes.txt") + ": not a JPEG or PNG file\n  " +
                         path("train/dog/3.png") + ": broken PNG: the file ends early");
}

TEST_F(ImageFolderTest, SaysWhichFolderIsWrong) {
  folder_.test = "tests";
  EXPECT_EQ(error(), path("tests") + ": no such folder; data.test names a folder of class folders below data.root");
  folder_.test = {};
  fs::create_directories(images_.root() / "train/empty");
  EXPECT_EQ(error(), path("train/empty") + ": the class folder has no file; fill or remove it");
  fs::remove(images_.root() / "train/empty");
  images_.add("test/catt/x.png", 1);
  fs::remove_all(images_.root() / "test/dog");
  EXPECT_EQ(error(), "class folders differ between " + path("train") + " and " + path("test") +
                         "; only the first has 'dog'; only the second has 'catt'");
  images_.add("flat/x.png", 1);
  folder_.train = "flat";
  EXPECT_EQ(error(), path("flat") + ": has no class folder; images belong into " + path("flat/<class>/<name>.jpg"));
  images_.add("flat/cat/x.png", 1);
  EXPECT_NE(error().find(path("flat/x.png") + ": lies in no class folder"), std::string::npos) << error();
}

TEST_F(ImageFolderTest, AClassWithoutAReadableImageIsAnErrorUnderSkipToo) {
  images_.write("train/zebra/a.png", "no image");
  images_.add("test/zebra/a.png", 9);
  folder_.on_bad_image = "skip";
  EXPECT_EQ(error(), path("train/zebra") + ": the class folder has no readable image: 1 file:\n  " + path("train/zebra/a.png") +
                         ": not a JPEG or PNG file");
}

TEST_F(ImageFolderTest, FingerprintSeesNamesBytesAndSizes) {
  const auto text = [this] { return load_data(config_, 1).train.dataset->fingerprint(); };
  const std::string first = text();
  EXPECT_EQ(text(), first);
  const auto changes = [&](const std::function<void()>& change, const std::function<void()>& back) {
    change();
    EXPECT_NE(text(), first);
    back();
    EXPECT_EQ(text(), first);
  };
  const fs::path file = images_.root() / "train/cat/4.png";
  changes([&] { fs::rename(file, file.parent_path() / "44.png"); }, [&] { fs::rename(file.parent_path() / "44.png", file); });
  changes([&] { images_.add("train/cat/4.png", 99); }, [&] { images_.add("train/cat/4.png", 4); });
  changes([&] { folder_.crop = 7; }, [&] { folder_.crop = 8; });
  changes([&] { images_.add("train/dog/new.png", 1); }, [&] { fs::remove(images_.root() / "train/dog/new.png"); });
}

TEST_F(ImageFolderTest, ALoopOfLinksEnds) {
  fs::create_directory_symlink(images_.root() / "train/cat", images_.root() / "train/cat/again");
  EXPECT_NE(error().find("is more than 16 folders below its class folder"), std::string::npos) << error();
}

TEST(ImageFolderConfig, RefusesWhatItWouldIgnore) {
  const auto says = [](std::string_view json, const std::string& part) {
    const std::string message = message_of<ConfigError>([&] { read<DataConfig>(parse_json(json, "x.json"), "data"); });
    EXPECT_NE(message.find(part), std::string::npos) << json << " -> " << message;
  };
  says(R"({"name": "glyphs", "crop": 8})", "data.crop: belongs to name: image-folder");
  says(R"({"name": "glyphs", "val": "val"})", "data.val: needs a fraction, 0 <= fraction < 1");
  says(R"({"name": "glyphs", "augment": [{"crop": "random"}]})", "crop and resized_crop belong to image-folder");
  says(R"({"name": "image-folder"})", "data.root: needs the folder of the data files");
  says(R"({"name": "image-folder", "root": "x", "val": 1})",
       "data.val: needs a fraction, 0 <= fraction < 1, or the name of a folder");
  says(R"({"name": "image-folder", "root": "x", "val": true})", "data.val: needs a fraction");
  says(R"({"name": "image-folder", "root": "x", "test": "/data"})", "data.test: needs the name of a folder below root");
  says(R"({"name": "image-folder", "root": "x", "crop": 300})", "data.crop: is 300; must be at most resize, which is 256");
  says(R"({"name": "image-folder", "root": "x", "resize": 64})", "data.crop: is 224; must be at most resize, which is 64");
  says(R"({"name": "image-folder", "root": "x", "on_bad_image": "ignore"})", "data.on_bad_image");
  says(R"({"name": "image-folder", "root": "x", "augment": [{"resized_crop": 0}]})", "data.augment[0].resized_crop");
}

TEST_F(ImageFolderTest, KeepsWhatCostAPassOverTheImages) {
  const std::string cache = path("cache/images");
  const testing::VariableScope kept_in("TESSERA_CACHE", cache);
  images_.write("train/dog/3.png", testing::encode_png(9, 9, testing::pattern(9, 9)).substr(0, 90));
  folder_.on_bad_image = "skip";
  const Normalization first = load_images(config_, 1).normalization;
  std::set<fs::path> kept;
  for (const auto& entry : fs::directory_iterator(cache)) kept.insert(entry.path());
  EXPECT_EQ(kept.size(), 3u) << "statistics, and what cannot be decoded of each folder";
  // Edits the cached files, which only a test does. The next load must return the edited values.
  for (const fs::path& file : kept) {
    std::string text;
    std::getline(std::ifstream(file), text);
    if (text.find("mean") != std::string::npos) std::ofstream(file) << R"({"mean":[0.5,0.25,0.125],"std":[1.0,2.0,3.0]})";
    if (text.find("dog/3.png") != std::string::npos) std::ofstream(file) << R"({"dog/3.png":"as kept"})";
  }
  std::string warning;
  set_log_sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) warning = text;
  });
  EXPECT_EQ(load_images(config_, 1).normalization.mean, (std::vector<double>{0.5, 0.25, 0.125}));
  EXPECT_NE(warning.find("dog/3.png: as kept"), std::string::npos) << warning;
  EXPECT_NE(load_images(config_, 2).normalization.mean[0], 0.5) << "another seed holds out other samples";
  for (const fs::path& file : kept) std::ofstream(file) << "{\"mean\": 3";
  const Normalization again = load_images(config_, 1).normalization;
  EXPECT_EQ(again.mean, first.mean);
  EXPECT_EQ(again.stddev, first.stddev);
}

// The broken file differs from the intact one by one byte in its middle, so that length, head and tail are the same.
TEST_F(ImageFolderTest, ARepairedImageComesBack) {
  const testing::VariableScope kept_in("TESSERA_CACHE", path("cache/images"));
  folder_.on_bad_image = "skip";
  folder_.resize = 300;
  testing::Bytes noise(3 * 300 * 300);
  std::mt19937 random(3);
  for (auto& byte : noise) byte = static_cast<std::uint8_t>(random());
  const std::string whole = testing::encode_png(300, 300, noise);
  std::string broken = whole;
  broken[whole.size() / 2] = static_cast<char>(broken[whole.size() / 2] ^ 1);
  const auto counts = [this] { return class_counts(all_of(load_images(config_, 1).train.images)); };
  set_log_sink([](LogLevel, std::string_view) {});
  images_.write("train/dog/large.png", broken);
  EXPECT_EQ(counts(), (std::vector<std::int64_t>{10, 10}));
  images_.write("train/dog/large.png", whole);
  const fs::path file = path("train/dog/large.png");
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(1));
  EXPECT_EQ(counts(), (std::vector<std::int64_t>{10, 11}));
}

TEST_F(ImageFolderTest, OnlyOneItemOfAugmentFrames) {
  folder_.augment = {{.crop = "random"}, {.resized_crop = 0.5}};
  try {
    load_data(config_, 1);
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_STREQ(e.what(), "data.augment[1]: crop and resized_crop stand once in augment");
  }
}

}  // namespace
}  // namespace tessera
