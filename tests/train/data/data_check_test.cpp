#include "train/data/data_check.h"

#include <gtest/gtest.h>

#include "core/config/read.h"
#include "tests/train/data/image_tree.h"

namespace tessera {
namespace {

DataConfig config_of(const testing::ImageTree& images) {
  ImageFolderConfig folder;
  folder.val = 0;
  folder.resize = 10;
  folder.crop = 8;
  DataConfig config;
  config.form = folder;
  config.root = images.root().string();
  return config;
}

TEST(DataCheck, CountsClassesAndSizes) {
  testing::ImageTree images;
  images.add_split("train", 10);
  images.add_split("test", 3, 50);
  DataConfig config = config_of(images);
  std::get<ImageFolderConfig>(config.form).val = 0.2;
  const DataReport report = check_data(config, 1);
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(to_text(report),
            "class     train     val    test\n"
            "cat           8       2       3\n"
            "dog           8       2       3\n"
            "images       16       4       6\n"
            "train: height x width 12x12 to 15x15\n"
            "val: height x width 12x12 to 15x15\n"
            "test: height x width 12x12 to 15x15\n"
            "\n0 bad files, 0 images more than once: clean\n");
}

TEST(DataCheck, NamesBadFilesOfEverySplit) {
  testing::ImageTree images;
  images.add_split("train", 2);
  images.add_split("test", 2, 50);
  images.write("train/dog/1.png", "text");
  images.write("test/cat/0.png", testing::encode_png(9, 9, testing::pattern(9, 9)).substr(0, 90));
  const DataReport report = check_data(config_of(images), 1);
  EXPECT_FALSE(report.clean());
  ASSERT_EQ(report.bad.size(), 2u);
  EXPECT_EQ(report.bad[0].path, images.path("train/dog/1.png"));
  EXPECT_EQ(report.bad[0].reason, "not a JPEG or PNG file");
  EXPECT_EQ(report.bad[1].path, images.path("test/cat/0.png"));
  EXPECT_EQ(report.bad[1].reason, "broken PNG: the file ends early");
  EXPECT_EQ(report.splits[0].counts, (std::vector<std::int64_t>{2, 1}));
}

TEST(DataCheck, FindsEqualPixelsUnderOtherNamesAndFormats) {
  testing::ImageTree images;
  images.add_split("train", 3);
  images.add_split("test", 3, 50);
  const testing::Bytes pixels = testing::pattern(20, 20);
  images.write("train/cat/a.png", testing::encode_png(20, 20, pixels));
  images.write("train/cat/b.png", testing::encode_png(20, 20, pixels, {.interlaced = true}));
  DataReport report = check_data(config_of(images), 1);
  ASSERT_EQ(report.duplicates.size(), 1u);
  EXPECT_TRUE(report.clean()) << "twice in one class of one split is reported only";

  images.write("test/dog/z.png", testing::encode_png(20, 20, pixels));
  report = check_data(config_of(images), 1);
  EXPECT_FALSE(report.clean());
  ASSERT_EQ(report.duplicates.size(), 1u);
  EXPECT_TRUE(report.duplicates[0].across_splits);
  EXPECT_TRUE(report.duplicates[0].across_classes);
  EXPECT_NE(to_text(report).find("\nthe same image in several splits, under several labels:\n  train  cat  " +
                                 images.path("train/cat/a.png") + "\n  train  cat  " + images.path("train/cat/b.png") +
                                 "\n  test  dog  " + images.path("test/dog/z.png") + "\n"),
            std::string::npos)
      << to_text(report);
  const Value value = write(report);
  EXPECT_FALSE(value.at("clean").as_bool());
  const Value& last = value.at("duplicates").as_list()[0].at("images").as_list()[2];
  EXPECT_EQ(last.at("split").as_string(), "test");
  EXPECT_EQ(last.at("class").as_string(), "dog");
}

TEST(DataCheck, ALeakIntoTheHeldOutShareCounts) {
  testing::ImageTree images;
  images.add_split("test", 1, 100);
  for (int i = 0; i < 10; ++i) images.add("train/cat/" + std::to_string(i) + ".png", 7);  // all pixels equal
  images.add("train/dog/0.png", 9);
  DataConfig config = config_of(images);
  std::get<ImageFolderConfig>(config.form).val = 0.2;
  const DataReport report = check_data(config, 1);
  EXPECT_FALSE(report.clean());
  EXPECT_TRUE(report.duplicates.at(0).across_splits);
}

TEST(DataCheck, WorksOnBuiltInSets) {
  GlyphsConfig glyphs;
  glyphs.count = 40;
  glyphs.test_count = 20;
  DataConfig config;
  config.form = glyphs;
  const DataReport report = check_data(config, 1);
  EXPECT_EQ(report.splits.size(), 3u);
  EXPECT_EQ(report.splits[0].samples + report.splits[1].samples, 40);
  EXPECT_EQ(report.splits[2].max_width, 28);
}

TEST(DataCheck, NamesThatAreNotUtf8StayOutOfJson) {
  testing::ImageTree images;
  images.add_split("train", 1);
  images.add_split("test", 1, 50);
  images.write("train/cat/\xff.png", "text");
  const Value value = write(check_data(config_of(images), 1));
  EXPECT_NE(to_json(value).find("train/cat/?.png"), std::string::npos);
}

}  // namespace
}  // namespace tessera
