// The keys of the `data` block that every set of labelled images has, and how the images become batches.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "core/config/fields.h"
#include "train/data/image_dataset.h"
#include "train/data/image_listing.h"
#include "train/data/splits.h"
#include "train/data/transforms.h"

namespace tessera {

struct ImageSplits {
  ImageSubset train;
  ImageSubset val;
  ImageSubset test;
  Normalization normalization = {};  // measured on `train` alone where the config says auto
};

// What a form of the block derives from where its samples are labelled images. Beside what every form has (train/data/builtin.h)
// it has `ImageSplits read_images(root, seed, bad)`: the splits without statistics; files that cannot be decoded are left out and
// listed in `bad`, unless that is null.
struct ImageConfig {
  Value val = 0.1;  // a fraction; of an image-folder also the name of a folder below root
  std::vector<AugmentConfig> augment;
  Value mean = "auto";  // or a list, one number per channel, in units where white is 1
  Value std = "auto";

  // For fields() of the form. In folders: of files, which `val` may name a folder of, and of whose images `augment` may choose a
  // part.
  void image_fields(Fields& f, bool in_folders = false);
  std::string_view task_name() const { return "classification"; }
  // Of the images, where the keys leave it to them.
  Normalization measure(const ImageSubset& images) const { return measure_normalization(images); }
  // As the keys say; `measure` is asked where one says auto. Throws ConfigError on numbers that are not one per channel.
  Normalization normalization(std::int64_t channels, const std::function<Normalization()>& measure) const;
};

// Of a set in memory, with a share of the training samples held out. Throws what check_dataset() throws.
ImageSplits split_in_memory(MemoryDataset training, MemoryDataset test, const Value& val, std::uint64_t seed);

// Batches of the splits, augmented and normalised.
DataSplits labelled_images(ImageSplits images, const ImageConfig& config, std::uint64_t seed);

}  // namespace tessera
