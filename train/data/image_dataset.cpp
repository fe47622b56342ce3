#include "train/data/image_dataset.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "core/rng.h"
#include "core/support/error.h"

namespace tessera {
namespace {

std::vector<std::vector<std::int64_t>> samples_by_class(const ImageDataset& dataset) {
  std::vector<std::vector<std::int64_t>> members(dataset.classes.size());
  const std::int64_t* labels = dataset.labels.data<std::int64_t>();
  for (std::int64_t i = 0; i < dataset.size(); ++i) members[static_cast<std::size_t>(labels[i])].push_back(i);
  return members;
}

}  // namespace

std::span<const std::uint8_t> MemoryDataset::pixels_of(std::int64_t index) const {
  const auto bytes = static_cast<std::size_t>(sample_shape().numel());
  return {images.data<std::uint8_t>() + static_cast<std::size_t>(index) * bytes, bytes};
}

void MemoryDataset::read(std::int64_t index, const Framing&, std::span<std::uint8_t> pixels) const {
  std::ranges::copy(pixels_of(index), pixels.begin());
}

ImageFacts MemoryDataset::inspect(std::int64_t index) const {
  const Shape shape = sample_shape();
  return {shape[0], shape[1], hash_pixels(shape[0], shape[1], shape[2], pixels_of(index))};
}

std::string MemoryDataset::origin(std::int64_t index) const { return str(name, '[', index, ']'); }

void MemoryDataset::hash_content(Xxh3Stream& stream) const {
  for (const std::int64_t size : images.shape()) stream.update({reinterpret_cast<const char*>(&size), sizeof size});
  stream.update({static_cast<const char*>(images.raw()), images.bytes()});
}

std::string hash_pixels(std::int64_t h, std::int64_t w, std::int64_t c, std::span<const std::uint8_t> pixels) {
  Xxh3Stream stream;
  for (const std::int64_t size : {h, w, c}) stream.update({reinterpret_cast<const char*>(&size), sizeof size});
  stream.update({reinterpret_cast<const char*>(pixels.data()), pixels.size()});
  return stream.hex();
}

void check_dataset(const MemoryDataset& dataset) {
  const Tensor& images = dataset.images;
  TESSERA_CHECK(images.rank() == 4 && dataset.labels.rank() == 1 && images.dim(0) == dataset.labels.dim(0), ShapeError,
                "dataset ", dataset.name, ": images are ", images.shape(), ", labels are ", dataset.labels.shape(),
                "; needs [n, h, w, c] and [n]");
  TESSERA_CHECK(images.dtype() == DType::u8 && dataset.labels.dtype() == DType::i64, DTypeError, "dataset ", dataset.name,
                ": images are ", images.dtype(), ", labels are ", dataset.labels.dtype(), "; needs u8 and i64");
  const std::int64_t* labels = dataset.labels.data<std::int64_t>();
  const auto classes = static_cast<std::int64_t>(dataset.classes.size());
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    TESSERA_CHECK(labels[i] >= 0 && labels[i] < classes, IoError, "dataset ", dataset.name, ": label of sample ", i, " is ",
                  labels[i], "; must be in 0..", classes - 1);
  }
}

ImageSubset all_of(std::shared_ptr<const ImageDataset> images) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(images->size()));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return {std::move(images), std::move(indices)};
}

ImageSubset without_left_out(ImageSubset subset) {
  std::erase_if(subset.indices, [&](std::int64_t index) { return subset.images->is_left_out(index); });
  return subset;
}

TrainVal split_validation(std::shared_ptr<const ImageDataset> images, double fraction, std::uint64_t seed) {
  TESSERA_CHECK(fraction >= 0 && fraction < 1, ConfigError, "split_validation: fraction is ", fraction,
                "; needs 0 <= fraction < 1");
  const RngStream stream(seed, "data", "validation");
  const auto members = samples_by_class(*images);
  std::vector<bool> held_out(static_cast<std::size_t>(images->size()), false);
  for (std::size_t label = 0; label < members.size(); ++label) {
    const auto count = static_cast<std::int64_t>(members[label].size());
    const auto held = static_cast<std::int64_t>(std::floor(fraction * static_cast<double>(count) + 0.5));
    const auto order = random_permutation(stream, label, count);
    for (std::int64_t i = 0; i < held; ++i) {
      const std::int64_t member = order[static_cast<std::size_t>(i)];
      held_out[static_cast<std::size_t>(members[label][static_cast<std::size_t>(member)])] = true;
    }
  }
  TrainVal split{{images, {}}, {images, {}}};
  for (std::int64_t i = 0; i < images->size(); ++i) {
    (held_out[static_cast<std::size_t>(i)] ? split.val : split.train).indices.push_back(i);
  }
  return split;
}

std::vector<std::int64_t> class_counts(const ImageSubset& subset) {
  std::vector<std::int64_t> counts(subset.images->classes.size(), 0);
  const std::int64_t* labels = subset.images->labels.data<std::int64_t>();
  for (const std::int64_t index : subset.indices) ++counts[static_cast<std::size_t>(labels[index])];
  return counts;
}

std::string fingerprint(const ImageDataset& dataset) {
  Xxh3Stream stream;
  dataset.hash_content(stream);
  stream.update({static_cast<const char*>(dataset.labels.raw()), dataset.labels.bytes()});
  for (const std::string& name : dataset.classes) stream.update({name.c_str(), name.size() + 1});
  return stream.hex();
}

}  // namespace tessera
