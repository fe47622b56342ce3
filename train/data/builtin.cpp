#include "train/data/builtin.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/config/read.h"
#include "core/io/answer_cache.h"
#include "core/support/error.h"
#include "train/data/cifar.h"
#include "train/data/glyphs.h"
#include "train/data/idx.h"
#include "train/data/image_folder.h"
#include "train/data/labelled_images.h"

namespace tessera {
namespace {

constexpr std::int64_t kGlyphTrainCount = 10000;
constexpr std::int64_t kGlyphTestCount = 2000;
constexpr std::int64_t kMeasuredImages = 1024;  // of an image-folder: each costs a decoding
constexpr std::string_view kImageFolder = "image-folder";

bool is_auto(const Value& value) { return value.is_string() && value.as_string() == "auto"; }

bool is_auto_or_numbers(const Value& value) {
  return is_auto(value) ||
         (value.is_list() && std::ranges::all_of(value.as_list(), [](const Value& v) { return v.is_number(); }));
}

[[noreturn]] void throw_unknown(const DataConfig& config) {
  std::string known;
  for (const std::string_view name : dataset_names()) known += str(known.empty() ? "" : ", ", name);
  throw ConfigError(str("data.name: unknown data set '", config.name, "'; known: ", known));
}

MemoryDataset load_split(const DataConfig& config, std::string_view split, std::uint64_t seed) {
  if (config.name == "glyphs") {
    const bool test = split == "test";
    return make_glyphs(seed, split, test ? config.test_count.value_or(kGlyphTestCount) : config.count.value_or(kGlyphTrainCount));
  }
  if (config.name == "mnist" || config.name == "fashion-mnist") return load_idx(config.root, config.name, split);
  if (config.name == "cifar10") return load_cifar(config.root, config.name, cifar10_layout(split));
  if (config.name == "cifar100") return load_cifar(config.root, config.name, cifar100_layout(split));
  throw_unknown(config);
}

// What the cache holds may be damaged: it is measured again then.
std::optional<Normalization> to_normalization(const std::optional<Value>& value) {
  if (!value) return {};
  Normalization result;
  std::vector<ConfigProblem> problems;
  read(*value, result, "", problems);
  const bool sound = problems.empty() && result.mean.size() == 3 && result.stddev.size() == 3;
  return sound ? std::optional(result) : std::nullopt;
}

// Measuring decodes images; the same images give the same bits, so the numbers are kept.
Normalization measure_once(const ImageSubset& subset) {
  Xxh3Stream samples;
  samples.update({reinterpret_cast<const char*>(subset.indices.data()), subset.indices.size() * sizeof(subset.indices[0])});
  const AnswerCache cache(str("mean and std, 1: ", fingerprint(*subset.images), ' ', samples.hex(), ' ', kMeasuredImages));
  if (const std::optional<Normalization> known = to_normalization(cache.find())) return *known;
  const Normalization measured = measure_normalization(subset, kMeasuredImages);
  cache.store(write(measured));
  return measured;
}

ImageSplits load_in_memory(const DataConfig& config, std::uint64_t seed) {
  const auto training = std::make_shared<const MemoryDataset>(load_split(config, "train", seed));
  const auto test = std::make_shared<const MemoryDataset>(load_split(config, "test", seed));
  check_dataset(*training);
  check_dataset(*test);
  TrainVal split = split_validation(training, config.val.as_double(), seed);
  return {std::move(split.train), std::move(split.val), all_of(test), {}};
}

bool is_fraction(const Value& value) { return value.is_number() && value.as_double() >= 0 && value.as_double() < 1; }

// A name below root that stays there is meant; an absolute path would pass over root.
bool is_folder_name(const std::string& name) { return !name.empty() && name.front() != '/'; }

std::vector<double> statistics(const Value& value, std::string_view key, const std::vector<double>& measured) {
  if (is_auto(value)) return measured;
  TESSERA_CHECK(is_auto_or_numbers(value), ConfigError, "data.", key, " is ", value.kind_name(),
                "; needs auto or a list of one number per channel");
  std::vector<double> given;
  for (const Value& number : value.as_list()) given.push_back(number.as_double());
  TESSERA_CHECK(given.size() == measured.size(), ConfigError, "data.", key, " has ", given.size(), " values; images have ",
                measured.size(), " channels");
  return given;
}

// Rules between keys: what a data set would ignore is refused.
void check_keys(const DataConfig& c, Fields& f) {
  const bool drawn = c.name == "glyphs";
  f.require(drawn == c.root.empty(), "root",
            drawn ? "glyphs is drawn, not read; remove root" : "needs the folder of the data files");
  f.require(drawn || (!c.count && !c.test_count), "count", "count and test_count belong to glyphs");
  f.require(is_auto_or_numbers(c.mean), "mean", "needs auto or a list of one number per channel");
  f.require(is_auto_or_numbers(c.std), "std", "needs auto or a list of one number per channel");
  const bool folders = c.name == kImageFolder;
  const bool named = folders && c.val.is_string();
  f.require(is_fraction(c.val) || named, "val",
            folders ? "needs a fraction, 0 <= fraction < 1, or the name of a folder" : "needs a fraction, 0 <= fraction < 1");
  const bool framed = std::ranges::any_of(c.augment, [](const AugmentConfig& item) { return item.crop || item.resized_crop; });
  f.require(folders || !framed, "augment", "crop and resized_crop belong to image-folder; pad_crop crops other images");
  f.require(folders || (!c.train && !c.test && !c.resize && !c.crop && !c.on_bad_image), "name",
            "train, test, resize, crop and on_bad_image belong to image-folder");
  if (!folders) return;
  f.require(is_folder_name(c.train.value_or("train")), "train", "needs the name of a folder below root");
  f.require(!named || is_folder_name(c.val.as_string()), "val", "needs the name of a folder below root");
  f.require(is_folder_name(c.test.value_or("test")), "test", "needs the name of a folder below root");
  f.require(c.crop.value_or(DataConfig::kCrop) <= c.resize.value_or(DataConfig::kResize), "crop",
            str("is ", c.crop.value_or(DataConfig::kCrop), "; must be at most resize, which is ",
                c.resize.value_or(DataConfig::kResize)));
}

void folder_fields(Fields& f, DataConfig& c) {
  f.add("train", c.train,
        {.help = "image-folder: folder of training images below root; train without it",
         .example = "training",
         .observable = "plan"});
  f.add("test", c.test,
        {.help = "image-folder: folder of test images below root; test without it", .example = "val", .observable = "plan"});
  f.add("resize", c.resize,
        {.help = "image-folder: length that the shorter side is resized to; 256 without it",
         .range = between(1, 16384),
         .example = "232",
         .observable = "bytes"});
  f.add("crop", c.crop,
        {.help = "image-folder: side of the square cut out of the resized image; 224 without it",
         .range = between(1, 16384),
         .example = "192",
         .observable = "plan"});
  f.add("on_bad_image", c.on_bad_image,
        {.help = "image-folder: error stops at a file that cannot be decoded; skip decodes all files first and leaves those out",
         .choices = {"error", "skip"},
         .example = "skip",
         .observable = "plan"});
}

}  // namespace

void DataConfig::fields(Fields& f) {
  f.add("name", name, {.help = "data set", .choices = dataset_names(), .example = "image-folder", .observable = "plan"});
  f.add("root", root,
        {.help = "folder of the data files, relative to the experiment file",
         .example = "${TESSERA_DATA}/cifar-10",
         .observable = "bytes"});
  f.add("batch", batch, {.help = "samples of one training step", .range = at_least(1), .example = "64", .observable = "plan"});
  f.add("drop_last", drop_last, {.help = "leave out the last, smaller training batch of an epoch", .observable = "plan"});
  f.add("val", val,
        {.help = "fraction of the training split held out for validation, 0 turns it off; image-folder: or a folder",
         .range = {.min = 0, .max = 1, .open_max = true},
         .example = "0.2",
         .observable = "plan"});
  f.add("augment", augment,
        {.help = "random changes of training samples, applied in order", .example = "[{pad_crop: 4}]", .observable = "bytes"});
  f.add("mean", mean,
        {.help = "per-channel mean that is taken off, white = 1; auto measures the training split",
         .example = "[0.5]",
         .observable = "bytes"});
  f.add("std", std,
        {.help = "per-channel deviation that is divided by; auto measures the training split",
         .example = "[0.25]",
         .observable = "bytes"});
  f.add("count", count,
        {.help = "training images that glyphs draws", .range = at_least(1), .example = "1000", .observable = "plan"});
  f.add("test_count", test_count,
        {.help = "test images that glyphs draws", .range = at_least(1), .example = "200", .observable = "plan"});
  folder_fields(f, *this);
  check_keys(*this, f);
}

const std::vector<std::string_view>& dataset_names() {
  static const std::vector<std::string_view> names{"cifar10", "cifar100", "fashion-mnist", "glyphs", kImageFolder, "mnist"};
  return names;
}

std::string_view task_name(const DataConfig&) { return "classification"; }

Shape sample_shape(const DataConfig& config) {
  constexpr std::int64_t kMnistSide = 28, kCifarSide = 32;
  if (config.name == "glyphs") return {1, kGlyphSide, kGlyphSide, 1};
  if (config.name == "mnist" || config.name == "fashion-mnist") return {1, kMnistSide, kMnistSide, 1};
  if (config.name == "cifar10" || config.name == "cifar100") return {1, kCifarSide, kCifarSide, 3};
  if (config.name != kImageFolder) throw_unknown(config);
  const std::int64_t side = config.crop.value_or(DataConfig::kCrop);
  return {1, side, side, 3};
}

Shape sample_shape(const DataSplits& data) { return sample_shape(*data.train.dataset); }

ImageSplits load_images(const DataConfig& config, std::uint64_t seed) {
  const bool lazy = config.name == kImageFolder;
  ImageSplits splits = lazy ? load_image_folder(config, seed) : load_in_memory(config, seed);
  if (lazy && !is_auto(config.mean) && !is_auto(config.std)) {
    splits.normalization = {statistics(config.mean, "mean", {0, 0, 0}), statistics(config.std, "std", {1, 1, 1})};
    return splits;
  }
  const Normalization measured = lazy ? measure_once(splits.train) : measure_normalization(splits.train);
  splits.normalization = {statistics(config.mean, "mean", measured.mean), statistics(config.std, "std", measured.stddev)};
  return splits;
}

DataSplits load_data(const DataConfig& config, std::uint64_t seed) {
  ImageSplits images = load_images(config, seed);
  const auto samples_of = [&](const ImageSubset& split) {
    if (!split.images) return std::shared_ptr<const Dataset>();
    return std::shared_ptr<const Dataset>(
        std::make_shared<const LabelledImages>(split.images, images.normalization, config.augment, seed));
  };
  const std::shared_ptr<const Dataset> training = samples_of(images.train);
  const std::shared_ptr<const Dataset> validation = images.val.images == images.train.images ? training : samples_of(images.val);
  return {{training, std::move(images.train.indices)},
          {validation, std::move(images.val.indices)},
          {samples_of(images.test), std::move(images.test.indices)}};
}

ImageSplits load_readable_images(const DataConfig& config, std::uint64_t seed, std::vector<BadFile>& bad) {
  return config.name == kImageFolder ? load_image_folder(config, seed, &bad) : load_in_memory(config, seed);
}

LoaderOptions training_options(const DataConfig& config, std::uint64_t seed, int threads) {
  LoaderOptions options;
  options.batch = config.batch;
  options.drop_last = config.drop_last;
  options.seed = seed;
  options.threads = threads;
  return options;
}

}  // namespace tessera
