#include "train/data/image_config.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/support/error.h"
#include "train/data/labelled_images.h"

namespace tessera {
namespace {

bool is_auto(const Value& value) { return value.is_string() && value.as_string() == "auto"; }

bool is_auto_or_numbers(const Value& value) {
  return is_auto(value) ||
         (value.is_list() && std::ranges::all_of(value.as_list(), [](const Value& v) { return v.is_number(); }));
}

bool is_fraction(const Value& value) { return value.is_number() && value.as_double() >= 0 && value.as_double() < 1; }

std::vector<double> statistics(const Value& value, std::string_view key, const std::vector<double>& measured,
                               std::int64_t channels) {
  if (is_auto(value)) return measured;
  TESSERA_CHECK(is_auto_or_numbers(value), ConfigError, "data.", key, " is ", value.kind_name(),
                "; needs auto or a list of one number per channel");
  std::vector<double> given;
  for (const Value& number : value.as_list()) given.push_back(number.as_double());
  TESSERA_CHECK(std::ssize(given) == channels, ConfigError, "data.", key, " has ", given.size(), " values; images have ",
                channels, " channels");
  return given;
}

}  // namespace

void ImageConfig::image_fields(Fields& f, bool in_folders) {
  f.add("val", val,
        {.help = in_folders ? "fraction of the training split held out for validation, 0 turns it off; or a folder below root"
                            : "fraction of the training split held out for validation, 0 turns it off",
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
  f.require(is_auto_or_numbers(mean), "mean", "needs auto or a list of one number per channel");
  f.require(is_auto_or_numbers(std), "std", "needs auto or a list of one number per channel");
  f.require(is_fraction(val) || (in_folders && val.is_string()), "val",
            in_folders ? "needs a fraction, 0 <= fraction < 1, or the name of a folder" : "needs a fraction, 0 <= fraction < 1");
  const bool framed = std::ranges::any_of(augment, [](const AugmentConfig& item) { return item.crop || item.resized_crop; });
  f.require(in_folders || !framed, "augment", "crop and resized_crop belong to image-folder; pad_crop crops other images");
}

Normalization ImageConfig::normalization(std::int64_t channels, const std::function<Normalization()>& measure) const {
  const Normalization measured = is_auto(mean) || is_auto(std) ? measure() : Normalization();
  return {statistics(mean, "mean", measured.mean, channels), statistics(std, "std", measured.stddev, channels)};
}

ImageSplits split_in_memory(MemoryDataset training, MemoryDataset test, const Value& val, std::uint64_t seed) {
  check_dataset(training);
  check_dataset(test);
  TrainVal split = split_validation(std::make_shared<const MemoryDataset>(std::move(training)), val.as_double(), seed);
  return {std::move(split.train), std::move(split.val), all_of(std::make_shared<const MemoryDataset>(std::move(test)))};
}

DataSplits labelled_images(ImageSplits images, const ImageConfig& config, std::uint64_t seed) {
  const auto samples_of = [&](const ImageSubset& split, StandIns stand_ins = {}) {
    if (!split.images) return std::shared_ptr<const Dataset>();
    return std::shared_ptr<const Dataset>(
        std::make_shared<const LabelledImages>(split.images, images.normalization, config.augment, seed, std::move(stand_ins)));
  };
  const std::shared_ptr<const Dataset> training = samples_of(images.train, StandIns(images.train, seed));
  const std::shared_ptr<const Dataset> validation = images.val.images == images.train.images ? training : samples_of(images.val);
  return {{training, std::move(images.train.indices)},
          {validation, std::move(images.val.indices)},
          {samples_of(images.test), std::move(images.test.indices)}};
}

}  // namespace tessera
