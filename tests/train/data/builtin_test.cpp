#include "train/data/builtin.h"

#include <gtest/gtest.h>

#include "core/config/read.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

DataConfig small() {
  GlyphsConfig glyphs;
  glyphs.count = 200;
  glyphs.test_count = 50;
  DataConfig config;
  config.form = glyphs;
  return config;
}

std::string config_error(std::string_view json) {
  return message_of<ConfigError>([&] { read<DataConfig>(parse_json(json, "x.json"), "data"); });
}

TEST(Builtin, GlyphsSplitThreeWays) {
  const DataSplits splits = load_data(small(), 1);
  EXPECT_EQ(splits.train.size(), 180);
  EXPECT_EQ(splits.val.size(), 20);
  EXPECT_EQ(splits.test.size(), 50);
  EXPECT_EQ(splits.train.dataset, splits.val.dataset);
}

TEST(Builtin, AutoStatisticsComeFromTheTrainingSplitAlone) {
  const ImageSplits splits = load_images(small(), 1);
  EXPECT_EQ(splits.normalization.mean, measure_normalization(splits.train).mean);
  EXPECT_NE(splits.normalization.mean, measure_normalization(all_of(splits.train.images)).mean);
}

TEST(Builtin, GivenStatisticsAreTakenAndChecked) {
  DataConfig config = small();
  auto& glyphs = std::get<GlyphsConfig>(config.form);
  glyphs.mean = Value::list({0.5});
  glyphs.std = Value::list({0.25});
  EXPECT_EQ(load_images(config, 1).normalization.mean, std::vector<double>{0.5});
  EXPECT_EQ(load_images(config, 1).normalization.stddev, std::vector<double>{0.25});
  glyphs.std = Value::list({0.25, 0.25, 0.25});
  EXPECT_THROW(load_data(config, 1), ConfigError);
}

TEST(Builtin, ReadsItsBlock) {
  const DataConfig config = read<DataConfig>(parse_json(
      R"({"name": "cifar10", "root": "c", "batch": 64, "augment": [{"pad_crop": 4}, {"flip": "horizontal"}]})", "x.json"));
  EXPECT_EQ(config.batch, 64);
  EXPECT_EQ(config.name(), "cifar10");
  const std::vector<AugmentConfig>& augment = std::get<CifarConfig>(config.form).augment;
  ASSERT_EQ(augment.size(), 2u);
  EXPECT_EQ(augment[0].pad_crop, 4);
  EXPECT_EQ(augment[1].flip, "horizontal");
  EXPECT_FALSE(augment[1].pad_crop);
  const Value written = write(config);
  EXPECT_EQ(written, write(read<DataConfig>(written)));
}

TEST(Builtin, RefusesWhatItWouldIgnore) {
  const auto says = [](std::string_view json, const std::string& part) {
    const std::string message = config_error(json);
    EXPECT_NE(message.find(part), std::string::npos) << json << " -> " << message;
  };
  says(R"({"name": "cifar10"})", "needs the folder of the data files");
  says(R"({"name": "glyphs", "root": "x"})", "glyphs is drawn, not read; remove root");
  says(R"({"name": "mnist", "root": "x", "count": 5})", "data.count: belongs to name: glyphs");
  says(R"({"augment": [{"pad_crop": 4, "flip": "horizontal"}]})", "exactly one of crop, resized_crop, pad_crop, flip, cutout");
  says(R"({"augment": [{}]})", "exactly one of crop, resized_crop, pad_crop, flip, cutout");
  says(R"({"mean": "automatic"})", "needs auto or a list");
  says(R"({"val": 1})", "data.val");
}

TEST(Builtin, TheBlockAloneSaysTheShapeOfASample) {
  EXPECT_EQ(sample_shape(small()), sample_shape(load_data(small(), 1)));
  const auto of = [](std::string_view json) { return sample_shape(read<DataConfig>(parse_json(json, "x.json"), "data")); };
  EXPECT_EQ(of(R"({"name": "fashion-mnist", "root": "/nowhere"})"), Shape({1, 28, 28, 1}));
  EXPECT_EQ(of(R"({"name": "cifar100", "root": "/nowhere"})"), Shape({1, 32, 32, 3}));
  EXPECT_EQ(of(R"({"name": "image-folder", "root": "/nowhere"})"), Shape({1, 224, 224, 3}));
  EXPECT_EQ(of(R"({"name": "image-folder", "root": "/nowhere", "crop": 96})"), Shape({1, 96, 96, 3}));
  for (const std::string_view name : dataset_names()) {
    DataConfig config;
    ASSERT_TRUE(set_form(config.form, name));
    EXPECT_EQ(config.name(), name);
    EXPECT_EQ(sample_shape(config).rank(), name == "text" ? 2 : 4) << name;
  }
}

TEST(Builtin, FileNamesAreTheRootOrThoseOfTheForm) {
  const auto changed = [](std::string_view json) {
    Value value = parse_json(json, "x.json");
    for_each_data_file(value, [](std::string& file) { file = "/x/" + file; });
    return to_json(value);
  };
  EXPECT_EQ(changed(R"({"name":"cifar10","root":"c"})"), R"({"name":"cifar10","root":"/x/c"})");
  EXPECT_EQ(changed(R"({"name":"text","files":["a","b"],"tokenizer":{"sentencepiece":"m"}})"),
            R"({"name":"text","files":["/x/a","/x/b"],"tokenizer":{"sentencepiece":"/x/m"}})");
  EXPECT_EQ(changed(R"({"name":"text","root":"r","files":["a"]})"), R"({"name":"text","root":"/x/r","files":["a"]})");
  for (const char* same :
       {R"({"name":"mnist","root":""})", R"({"name":"glyphs","files":["a"]})", R"({"name":"text","files":"a"})",
        R"({"name":"txt","files":["a"]})", R"({"files":["a"]})", R"({"name":1,"root":2})", R"([1])"}) {
    EXPECT_EQ(changed(same), same);
  }
}

TEST(Builtin, NamesTheKnownSets) {
  EXPECT_EQ(
      config_error(R"({"name": "cifar"})"),
      "x.json: data.name: 'cifar' is not a choice; did you mean 'cifar10'?; choices: glyphs cifar10 cifar100 mnist fashion-mnist "
      "image-folder text");
  EXPECT_EQ(dataset_names(),
            (std::vector<std::string_view>{"cifar10", "cifar100", "fashion-mnist", "glyphs", "image-folder", "mnist", "text"}));
}

TEST(Builtin, WritesTheKeysOfItsKindInTheirOrder) {
  EXPECT_EQ(
      to_json(write(read<DataConfig>(parse_json(R"({"name": "fashion-mnist", "root": "m"})", "x.json")))),
      R"({"name":"fashion-mnist","root":"m","batch":128,"drop_last":true,"val":0.1,"augment":[],"mean":"auto","std":"auto"})");
  EXPECT_EQ(to_json(write(small())),
            R"({"name":"glyphs","root":"","batch":128,"drop_last":true,"val":0.1,"augment":[],"mean":"auto","std":"auto",)"
            R"("count":200,"test_count":50})");
}

}  // namespace
}  // namespace tessera
