// Your own images: a data set of files that are decoded when a sample is asked for, in the loader's threads.
#pragma once

#include <vector>

#include "train/data/builtin.h"
#include "train/data/image_dataset.h"
#include "train/data/image_listing.h"

namespace tessera {

// Samples are the listing's files in order, as [crop, crop, 3].
class ImageFolder final : public ImageDataset {
 public:
  ImageFolder(ImageListing listing, std::int64_t resize, std::int64_t crop);

  Shape sample_shape() const override { return {crop_, crop_, 3}; }
  std::size_t pixel_bytes() const override { return 0; }
  void read(std::int64_t index, const Framing& framing, std::span<std::uint8_t> pixels) const override;
  ImageFacts inspect(std::int64_t index) const override;
  std::string origin(std::int64_t index) const override { return (folder_ / file(index).path).string(); }
  bool has_files() const override { return true; }
  // Covers sizes, each file's path, length and first and last 16 KiB.
  void hash_content(Xxh3Stream& stream) const override;

 private:
  const ImageFile& file(std::int64_t index) const { return files_[static_cast<std::size_t>(index)]; }

  std::filesystem::path folder_;
  std::vector<ImageFile> files_;
  std::int64_t resize_;
  std::int64_t crop_;
};

// The splits of `name: image-folder`, without statistics. Without `bad`, the config's on_bad_image holds: error throws IoError on
// what cannot be an image by its first bytes and leaves the rest to read(); skip decodes every file now, leaves out what fails
// and warns. With `bad`, every file is decoded and what fails is left out and listed there. Throws IoError when folders are
// missing, empty or have other classes than the training folder.
ImageSplits load_image_folder(const DataConfig& config, std::uint64_t seed, std::vector<BadFile>* bad = nullptr);

}  // namespace tessera
