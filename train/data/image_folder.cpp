#include "train/data/image_folder.h"

#include "core/support/error.h"
#include "core/support/log.h"
#include "train/data/image.h"
#include "train/data/resample.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class SplitReader {
 public:
  SplitReader(const DataConfig& config, std::vector<BadFile>* bad) : config_(config), bad_(bad) {}

  std::shared_ptr<const ImageDataset> read(const std::string& folder, std::string_view key) {
    ImageListing listing = list(fs::path(config_.root) / folder, key);
    if (!training_) {
      training_ = ImageListing{listing.folder, listing.classes, {}, {}};
    } else {
      check_same_classes(*training_, listing);
    }
    sift(listing);
    return std::make_shared<const ImageFolder>(std::move(listing), config_.resize.value_or(DataConfig::kResize),
                                               config_.crop.value_or(DataConfig::kCrop));
  }

 private:
  static ImageListing list(const fs::path& folder, std::string_view key) {
    std::error_code ignored;
    TESSERA_CHECK(fs::is_directory(folder, ignored), IoError, folder.string(), ": no such folder; data.", key,
                  " names a folder of class folders below data.root");
    return list_images(folder);
  }

  void sift(ImageListing& listing) {
    const bool skip = config_.on_bad_image == "skip";
    if (bad_ != nullptr) {
      decode_all(listing);
      bad_->insert(bad_->end(), listing.bad.begin(), listing.bad.end());
    } else {
      if (skip) drop_undecodable(listing);
      TESSERA_CHECK(skip || listing.bad.empty(), IoError, listing.folder.string(),
                    ": no readable images (data.on_bad_image: skip leaves them out), ", describe(listing.bad));
      if (!listing.bad.empty()) log_warning(str(listing.folder.string(), ": leaves out ", describe(listing.bad)));
    }
    check_classes_filled(listing);
  }

  const DataConfig& config_;
  std::vector<BadFile>* bad_;
  std::optional<ImageListing> training_;  // its folder and classes
};

Image readable_image(const fs::path& path) {
  try {
    return read_image(path);
  } catch (const IoError& error) {
    throw IoError(str(error.what(), "; tessera data check lists all such files, data.on_bad_image: skip leaves them out"));
  }
}

}  // namespace

ImageFolder::ImageFolder(ImageListing listing, std::int64_t resize, std::int64_t crop)
    : folder_(std::move(listing.folder)), files_(std::move(listing.files)), resize_(resize), crop_(crop) {
  TESSERA_CHECK(crop >= 1 && crop <= resize, ConfigError, "data.crop is ", crop, "; must be 1..data.resize, which is ", resize);
  name = "image-folder";
  classes = std::move(listing.classes);
  std::vector<std::int64_t> truth;
  for (const ImageFile& item : files_) truth.push_back(item.label);
  labels = Tensor::from(truth, {static_cast<std::int64_t>(truth.size())});
}

void ImageFolder::read(std::int64_t index, const Framing& framing, std::span<std::uint8_t> pixels) const {
  const Image image = readable_image(folder_ / file(index).path);
  resample(image, choose_frame(framing, image.height, image.width, resize_, crop_), crop_, pixels);
}

ImageFacts ImageFolder::inspect(std::int64_t index) const {
  if (file(index).facts) return *file(index).facts;
  const Image image = read_image(folder_ / file(index).path);
  return {image.height, image.width, hash_pixels(image.height, image.width, 3, image.pixels)};
}

void ImageFolder::hash_content(Xxh3Stream& stream) const {
  const auto add = [&stream](std::uint64_t value) { stream.update({reinterpret_cast<const char*>(&value), sizeof value}); };
  add(static_cast<std::uint64_t>(resize_));
  add(static_cast<std::uint64_t>(crop_));
  hash_files(files_, stream);
}

ImageSplits load_image_folder(const DataConfig& config, std::uint64_t seed, std::vector<BadFile>* bad) {
  SplitReader reader(config, bad);
  const auto training = reader.read(config.train.value_or("train"), "train");
  ImageSplits splits;
  if (config.val.is_string()) {
    splits.train = all_of(training);
    splits.val = all_of(reader.read(config.val.as_string(), "val"));
  } else {
    TrainVal split = split_validation(training, config.val.as_double(), seed);
    splits.train = std::move(split.train);
    splits.val = std::move(split.val);
  }
  splits.test = all_of(reader.read(config.test.value_or("test"), "test"));
  return splits;
}

}  // namespace tessera
