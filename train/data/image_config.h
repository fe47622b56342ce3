// The keys of the `data` block that every set of labelled images has, and how the images become batches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/fields.h"
#include "train/data/image_dataset.h"
#include "train/data/image_listing.h"
#include "train/data/root_use.h"
#include "train/data/splits.h"
#include "train/data/transforms.h"

namespace tessera {

struct ImageSplits {
  ImageSubset train;  // with samples that are left out, in whose place others are read; val and test have none of these
  ImageSubset val;
  ImageSubset test;
  Normalization normalization = {};  // where the config says auto, measured on `train` alone
  std::vector<std::string> warnings = {};  // of files that are left out
};

// The base of a form of the block whose samples are labelled images. Beside what every form has (train/data/builtin.h) the form
// has `ImageSplits read_images(root, seed, bad)`, which gives the splits without statistics. Where `bad` is not null, it leaves
// out files that cannot be decoded and lists them there.
struct ImageConfig {
  static constexpr std::string_view kTask = "classification";

  Value val = 0.1;  // a fraction; of an image-folder also the name of a folder below root
  std::vector<AugmentConfig> augment;
  Value mean = "auto";  // or a list, one number per channel, in units where white is 1
  Value std = "auto";

  // For fields() of the form. `in_folders`: the images are files in folders, so that `val` may name a folder and `augment` may
  // have `crop` and `resized_crop`.
  void image_fields(Fields& f, bool in_folders = false);
  std::string_view task_name() const { return kTask; }
  // What `auto` stands for: the statistics of the images.
  Normalization measure(const ImageSubset& images) const { return measure_normalization(images); }
  // The statistics that the keys give. Calls `measure` where a key says auto. Throws ConfigError where a key does not have one
  // number for each channel.
  Normalization normalization(std::int64_t channels, const std::function<Normalization()>& measure) const;
};

// Splits of a set in memory, with a share of the training samples held out for validation. Throws what check_dataset() throws.
ImageSplits split_in_memory(MemoryDataset training, MemoryDataset test, const Value& val, std::uint64_t seed);

// Batches of the splits, augmented and normalised.
DataSplits labelled_images(ImageSplits images, const ImageConfig& config, std::uint64_t seed);

}  // namespace tessera
