// Your own images: a data set of files that are decoded when a sample is asked for, in the loader's threads.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "train/data/image.h"
#include "train/data/image_config.h"
#include "train/data/image_listing.h"

namespace tessera {

// The form `name: image-folder` of the data block.
struct ImageFolderConfig : ImageConfig {
  static constexpr const char* kName = "image-folder";
  static constexpr RootUse kRoot = RootUse::needed;
  static constexpr std::int64_t kResize = 256;
  static constexpr std::int64_t kCrop = 224;
  std::optional<std::string> train;  // folder below root, "train"
  std::optional<std::string> test;  // folder below root, "test"
  std::optional<std::int64_t> resize;  // shorter side of the resized image, kResize
  std::optional<std::int64_t> crop;  // side of the sample, kCrop
  std::optional<std::string> on_bad_image;  // "error" (when absent) or "skip"
  std::optional<std::vector<LeftOutImage>> left_out;  // images that the run goes on without
  void fields(Fields& f);

  Shape sample_shape() const { return {1, crop.value_or(kCrop), crop.value_or(kCrop), 3}; }
  // Without `bad`, on_bad_image holds: error throws IoError on what cannot be an image by its first bytes and leaves the rest to
  // ImageFolder::read(); skip decodes every file now, leaves out what fails and warns. With `bad`, every file is decoded and what
  // fails is left out and listed there. Images of left_out keep their places; with `bad` they are read like any other. Throws
  // IoError when folders are missing, empty or have other classes than the training folder, ConfigError on an image of left_out
  // that is of no split.
  ImageSplits read_images(const std::string& root, std::uint64_t seed, std::vector<BadFile>* bad) const;
  // Every file of any split that cannot be decoded, as it is now.
  std::vector<BrokenImage> undecodable_images(const std::string& root) const;
  // The statistics of at most 1024 images, evenly spread. They are kept in the cache (core/io/answer_cache.h), because each
  // image costs a decoding.
  Normalization measure(const ImageSubset& training) const;
};

// Samples are the listing's files in order, as [crop, crop, 3].
class ImageFolder final : public ImageDataset {
 public:
  // `name` is the folder's below data.root.
  ImageFolder(ImageListing listing, std::string name, std::int64_t resize, std::int64_t crop);

  Shape sample_shape() const override { return {crop_, crop_, 3}; }
  std::size_t pixel_bytes() const override { return 0; }
  void read(std::int64_t index, const Framing& framing, std::span<std::uint8_t> pixels) const override;
  ImageFacts inspect(std::int64_t index) const override;
  std::string origin(std::int64_t index) const override { return (folder_ / file(index).path).string(); }
  bool has_files() const override { return true; }
  bool is_left_out(std::int64_t index) const override { return file(index).left_out; }
  std::vector<BrokenImage> met_broken() const override;
  std::optional<Resizing> resizing() const override { return Resizing{resize_, crop_}; }
  // Covers sizes, each file's path, length and first and last 16 KiB.
  void hash_content(Xxh3Stream& stream) const override;

 private:
  const ImageFile& file(std::int64_t index) const { return files_[static_cast<std::size_t>(index)]; }

  Image decode(const ImageFile& file) const;  // notes those that fail

  std::filesystem::path folder_;
  std::string folder_name_;
  std::vector<ImageFile> files_;
  std::int64_t resize_;
  std::int64_t crop_;
  mutable std::mutex broken_mutex_;
  mutable std::vector<BrokenImage> broken_;
};

}  // namespace tessera
