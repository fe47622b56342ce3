// Labelled images of one size as bytes, and index lists that select from them without copying a pixel. A set holds its pixels in
// memory or makes them when a sample is asked for. LabelledImages makes batches of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/support/hash.h"
#include "core/tensor.h"
#include "train/data/framing.h"
#include "train/data/left_out.h"

namespace tessera {

// An image as it is stored, before it is brought to the size of a sample.
struct ImageFacts {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::string pixels;  // XXH3-128 in hexadecimal of size, channels and pixels: equal images, equal text
};

// How files of any size become samples: the shorter side resized, the centre cut out.
struct Resizing {
  std::int64_t shorter = 0;
  std::int64_t crop = 0;
};

struct ImageDataset {
  std::string name;
  Tensor labels;  // i64 [n], each in 0..classes.size()-1
  std::vector<std::string> classes;

  virtual ~ImageDataset() = default;
  std::int64_t size() const { return labels.dim(0); }
  virtual Shape sample_shape() const = 0;  // [h, w, c]
  virtual std::size_t pixel_bytes() const = 0;  // held in memory for as long as the set lives

  // Everything below may be called from several threads at once.
  // Sample `index` as h * w * c bytes. A set in memory ignores `framing`: its frame is always the whole image. Throws IoError
  // naming the file when it cannot be read or decoded.
  virtual void read(std::int64_t index, const Framing& framing, std::span<std::uint8_t> pixels) const = 0;
  // Throws what read() throws.
  virtual ImageFacts inspect(std::int64_t index) const = 0;
  // Where the sample came from, for messages: a path, or "cifar10[17]".
  virtual std::string origin(std::int64_t index) const = 0;
  // Whether samples are files of their own: origin() is then the path.
  virtual bool has_files() const { return false; }
  // A sample that the run goes on without: it keeps its number, and read() of it throws.
  virtual bool is_left_out(std::int64_t) const { return false; }
  // The images whose files read() could not decode, in the order in which it met them.
  virtual std::vector<BrokenImage> met_broken() const { return {}; }
  // None where images have the samples' size.
  virtual std::optional<Resizing> resizing() const { return std::nullopt; }
  // Adds what identifies shape and pixels.
  virtual void hash_content(Xxh3Stream& stream) const = 0;
};

// All pixels in memory.
struct MemoryDataset final : ImageDataset {
  Tensor images;  // u8 [n, h, w, c]

  Shape sample_shape() const override { return images.shape().erase(0); }
  std::size_t pixel_bytes() const override { return images.bytes(); }
  void read(std::int64_t index, const Framing& framing, std::span<std::uint8_t> pixels) const override;
  ImageFacts inspect(std::int64_t index) const override;
  std::string origin(std::int64_t index) const override;
  void hash_content(Xxh3Stream& stream) const override;

 private:
  std::span<const std::uint8_t> pixels_of(std::int64_t index) const;
};

// Throws ShapeError or DTypeError when images and labels do not belong together, IoError on a label outside the classes.
void check_dataset(const MemoryDataset& dataset);

// XXH3-128 in hexadecimal over size, channels and pixels of an image [h, w, c].
std::string hash_pixels(std::int64_t h, std::int64_t w, std::int64_t c, std::span<const std::uint8_t> pixels);

// Images of a set, in their evaluation order. Copies share the set.
struct ImageSubset {
  std::shared_ptr<const ImageDataset> images;
  std::vector<std::int64_t> indices;

  std::int64_t size() const { return static_cast<std::int64_t>(indices.size()); }
};
ImageSubset all_of(std::shared_ptr<const ImageDataset> images);
ImageSubset without_left_out(ImageSubset subset);

struct TrainVal {
  ImageSubset train;
  ImageSubset val;
};
// Holds out floor(fraction * count + 0.5) samples of each class, chosen by the seed and the class's own samples alone; both lists
// ascend. fraction 0 leaves val empty. Throws ConfigError unless 0 <= fraction < 1.
TrainVal split_validation(std::shared_ptr<const ImageDataset> images, double fraction, std::uint64_t seed);

std::vector<std::int64_t> class_counts(const ImageSubset& subset);

// XXH3-128 in hexadecimal over shape, pixels, labels and class names: equal content, equal text.
std::string fingerprint(const ImageDataset& images);

}  // namespace tessera
