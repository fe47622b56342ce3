// The data block of an experiment file, and the whole list of data sets it can name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/fields.h"
#include "train/data/dataset.h"
#include "train/data/loader.h"
#include "train/data/transforms.h"

namespace tessera {

struct DataConfig {
  std::string name = "glyphs";
  std::string root;  // folder of the files; glyphs has none
  std::int64_t batch = 128;
  bool drop_last = true;
  double val = 0.1;
  std::vector<AugmentConfig> augment;
  Value mean = "auto";  // or a list, one number per channel, in units where white is 1
  Value std = "auto";
  std::optional<std::int64_t> count;       // glyphs: training images, 10000
  std::optional<std::int64_t> test_count;  // glyphs: test images, 2000
  void fields(Fields& f);
};

// "cifar10", "cifar100", "fashion-mnist", "glyphs", "mnist".
const std::vector<std::string_view>& dataset_names();

struct DataSplits {
  Subset train;
  Subset val;  // shares the training set's pixels; empty with val: 0
  Subset test;
  Normalization normalization;  // measured on `train` alone where the config says auto
};
// Reads or draws a data set; root is used as it stands. Throws ConfigError on an unknown name or statistics that do not fit
// the channels, IoError on missing or damaged files.
DataSplits load_data(const DataConfig& config, std::uint64_t seed);

// Shuffled, augmented batches of the training split.
LoaderOptions training_options(const DataConfig& config, const Normalization& normalization, std::uint64_t seed, int threads);

}  // namespace tessera
