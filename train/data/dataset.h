// Labelled images held in memory as bytes, and index lists that select from them without copying a pixel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace tessera {

struct Dataset {
  std::string name;
  Tensor images;  // u8 [n, h, w, c]
  Tensor labels;  // i64 [n], each in 0..classes.size()-1
  std::vector<std::string> classes;

  std::int64_t size() const { return images.dim(0); }
  // h * w * c, the bytes of one image.
  std::int64_t sample_bytes() const { return images.numel() / std::max<std::int64_t>(1, images.dim(0)); }
};

// Throws ShapeError or DTypeError when images and labels do not belong together, IoError on a label outside the classes.
void check_dataset(const Dataset& dataset);

// Samples of a dataset, in their evaluation order. Copies share the dataset.
struct Subset {
  std::shared_ptr<const Dataset> dataset;
  std::vector<std::int64_t> indices;

  std::int64_t size() const { return static_cast<std::int64_t>(indices.size()); }
};
Subset all_of(std::shared_ptr<const Dataset> dataset);

struct TrainVal {
  Subset train;
  Subset val;
};
// Holds out floor(fraction * count + 0.5) samples of each class, chosen by the seed and the class's own samples alone; both lists
// ascend. fraction 0 leaves val empty. Throws ConfigError unless 0 <= fraction < 1.
TrainVal split_validation(std::shared_ptr<const Dataset> dataset, double fraction, std::uint64_t seed);

std::vector<std::int64_t> class_counts(const Subset& subset);

// XXH3-128 in hexadecimal over shape, pixels, labels and class names: equal content, equal text.
std::string fingerprint(const Dataset& dataset);

}  // namespace tessera
