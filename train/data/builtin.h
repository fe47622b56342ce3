// The data block of an experiment file, and the whole list of data sets it can name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/fields.h"
#include "train/data/dataset.h"
#include "train/data/image_dataset.h"
#include "train/data/image_listing.h"
#include "train/data/loader.h"
#include "train/data/transforms.h"

namespace tessera {

struct DataConfig {
  std::string name = "glyphs";
  std::string root;  // folder of the files; glyphs has none
  std::int64_t batch = 128;
  bool drop_last = true;
  Value val = 0.1;  // a fraction, or image-folder: a folder below root
  std::vector<AugmentConfig> augment;
  Value mean = "auto";  // or a list, one number per channel, in units where white is 1
  Value std = "auto";
  std::optional<std::int64_t> count;  // glyphs: training images, 10000
  std::optional<std::int64_t> test_count;  // glyphs: test images, 2000
  std::optional<std::string> train;  // image-folder: folder below root, "train"
  std::optional<std::string> test;  // image-folder: folder below root, "test"
  std::optional<std::int64_t> resize;  // image-folder: shorter side of the resized image
  std::optional<std::int64_t> crop;  // image-folder: side of the sample
  std::optional<std::string> on_bad_image;  // image-folder: "error" (when absent) or "skip"
  void fields(Fields& f);

  static constexpr std::int64_t kResize = 256;
  static constexpr std::int64_t kCrop = 224;
};

// "cifar10", "cifar100", "fashion-mnist", "glyphs", "image-folder", "mnist".
const std::vector<std::string_view>& dataset_names();

// Of the task that a network learns from the data set, see train/tasks/builtin.h.
std::string_view task_name(const DataConfig& config);

// Of one sample, [1, h, w, c], as the block alone says it: no file is looked at. Throws ConfigError on an unknown name.
Shape sample_shape(const DataConfig& config);

struct DataSplits {
  Subset train;
  Subset val;  // part of the training set, or a set of its own; empty with val: 0
  Subset test;
};
Shape sample_shape(const DataSplits& data);  // of one sample, [1, h, w, c]
// Reads or draws a data set; root is used as it stands. Throws ConfigError on an unknown name, statistics or augmentations that
// do not fit the images, IoError on missing or damaged files. Measures at most 1024 images of an image-folder, evenly spread.
DataSplits load_data(const DataConfig& config, std::uint64_t seed);

struct ImageSplits {
  ImageSubset train;
  ImageSubset val;
  ImageSubset test;
  Normalization normalization;  // measured on `train` alone where the config says auto
};
// What load_data() makes batches of.
ImageSplits load_images(const DataConfig& config, std::uint64_t seed);
// The same without statistics; of an image-folder, every file is decoded, and those that fail are left out and listed in `bad`.
ImageSplits load_readable_images(const DataConfig& config, std::uint64_t seed, std::vector<BadFile>& bad);

// Shuffled, augmented batches of the training split.
LoaderOptions training_options(const DataConfig& config, std::uint64_t seed, int threads);

}  // namespace tessera
