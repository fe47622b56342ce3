#include "train/data/builtin.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.h"
#include "train/data/cifar.h"
#include "train/data/glyphs.h"
#include "train/data/idx.h"

namespace tessera {
namespace {

constexpr std::int64_t kGlyphTrainCount = 10000;
constexpr std::int64_t kGlyphTestCount = 2000;

bool is_auto(const Value& value) { return value.is_string() && value.as_string() == "auto"; }

bool is_auto_or_numbers(const Value& value) {
  return is_auto(value) || (value.is_list() && std::ranges::all_of(value.as_list(),
      [](const Value& v) { return v.is_number(); }));
}

MemoryDataset load_split(const DataConfig& config, std::string_view split, std::uint64_t seed) {
  if (config.name == "glyphs") {
    const bool test = split == "test";
    return make_glyphs(seed, split, test ? config.test_count.value_or(kGlyphTestCount) : config.count.value_or(kGlyphTrainCount));
  }
  if (config.name == "mnist" || config.name == "fashion-mnist") return load_idx(config.root, config.name, split);
  if (config.name == "cifar10") return load_cifar(config.root, config.name, cifar10_layout(split));
  if (config.name == "cifar100") return load_cifar(config.root, config.name, cifar100_layout(split));
  std::string known;
  for (const std::string_view name : dataset_names()) known += str(known.empty() ? "" : ", ", name);
  throw ConfigError(str("data.name: unknown data set '", config.name, "'; known: ", known));
}

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

}  // namespace

void DataConfig::fields(Fields& f) {
  f.add("name", name, {.help = "data set", .choices = dataset_names(), .example = "cifar10"});
  f.add("root", root, {.help = "folder of the data files, relative to the experiment file",
      .example = "${TESSERA_DATA}/cifar-10"});
  f.add("batch", batch, {.help = "samples of one training step", .range = at_least(1)});
  f.add("drop_last", drop_last, {.help = "leave out the last, smaller training batch of an epoch"});
  f.add("val", val, {.help = "fraction of the training split held out for validation; 0 turns it off",
                     .range = {.min = 0, .max = 1, .open_max = true}});
  f.add("augment", augment, {.help = "random changes of training samples, applied in order", .example = "[{pad_crop: 4}]"});
  f.add("mean", mean, {.help = "per-channel mean that is taken off, white = 1; auto measures the training split",
      .example = "[0.5]"});
  f.add("std", std, {.help = "per-channel deviation that is divided by; auto measures the training split", .example = "[0.25]"});
  f.add("count", count, {.help = "training images that glyphs draws", .range = at_least(1), .example = "10000"});
  f.add("test_count", test_count, {.help = "test images that glyphs draws", .range = at_least(1), .example = "2000"});
  const bool drawn = name == "glyphs";
  f.require(drawn == root.empty(), "root",
      drawn ? "glyphs is drawn, not read; remove root" : "needs the folder of the data files");
  f.require(drawn || (!count && !test_count), "count", "count and test_count belong to glyphs");
  f.require(is_auto_or_numbers(mean), "mean", "needs auto or a list of one number per channel");
  f.require(is_auto_or_numbers(std), "std", "needs auto or a list of one number per channel");
}

const std::vector<std::string_view>& dataset_names() {
  static const std::vector<std::string_view> names{"cifar10", "cifar100", "fashion-mnist", "glyphs", "mnist"};
  return names;
}

DataSplits load_data(const DataConfig& config, std::uint64_t seed) {
  const auto training = std::make_shared<const MemoryDataset>(load_split(config, "train", seed));
  const auto test = std::make_shared<const MemoryDataset>(load_split(config, "test", seed));
  check_dataset(*training);
  check_dataset(*test);
  TrainVal split = split_validation(training, config.val, seed);
  DataSplits splits{std::move(split.train), std::move(split.val), all_of(test), {}};
  const Normalization measured = measure_normalization(splits.train);
  splits.normalization = {statistics(config.mean, "mean", measured.mean), statistics(config.std, "std", measured.stddev)};
  return splits;
}

LoaderOptions training_options(const DataConfig& config, const Normalization& normalization, std::uint64_t seed, int threads) {
  LoaderOptions options;
  options.batch = config.batch;
  options.drop_last = config.drop_last;
  options.augment = config.augment;
  options.normalization = normalization;
  options.seed = seed;
  options.threads = threads;
  return options;
}

}  // namespace tessera
