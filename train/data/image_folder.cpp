#include "train/data/image_folder.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/config/read.h"
#include "core/io/answer_cache.h"
#include "core/support/error.h"
#include "train/data/resample.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMeasuredImages = 1024;

ImageListing list_split(const fs::path& folder, std::string_view key) {
  std::error_code ignored;
  TESSERA_CHECK(fs::is_directory(folder, ignored), IoError, folder.string(), ": no such folder; data.", key,
                " names a folder of class folders below data.root");
  return list_images(folder);
}

class SplitReader {
 public:
  SplitReader(const ImageFolderConfig& config, const std::string& root, std::vector<BadFile>* bad)
      : config_(config), root_(root), bad_(bad) {}

  std::shared_ptr<const ImageDataset> read(const std::string& folder, std::string_view key) {
    ImageListing listing = list_split(fs::path(root_) / folder, key);
    if (!training_) {
      training_ = ImageListing{listing.folder, listing.classes, {}, {}};
    } else {
      check_same_classes(*training_, listing);
    }
    if (bad_ != nullptr) {
      decode_all(listing);
      bad_->insert(bad_->end(), listing.bad.begin(), listing.bad.end());
    } else {
      sift(listing, folder);
    }
    check_classes_filled(listing);
    return std::make_shared<const ImageFolder>(std::move(listing), folder, config_.resize.value_or(ImageFolderConfig::kResize),
                                               config_.crop.value_or(ImageFolderConfig::kCrop));
  }

  std::vector<std::string> take_warnings() { return std::move(warnings_); }

 private:
  void sift(ImageListing& listing, const std::string& folder) {
    const std::vector<LeftOutImage> left_out = config_.left_out.value_or(std::vector<LeftOutImage>());
    take_out(listing, folder, left_out);
    const bool skip = config_.on_bad_image == "skip";
    if (skip) drop_undecodable(listing);
    TESSERA_CHECK(skip || listing.bad.empty(), IoError, listing.folder.string(),
                  ": no readable images (data.on_bad_image: skip leaves them out), ", describe(listing.bad));
    if (!listing.bad.empty()) warnings_.push_back(str(listing.folder.string(), ": leaves out ", describe(listing.bad)));
    keep_places(listing, folder, left_out);
    std::vector<BadFile> kept;
    for (const ImageFile& file : listing.files) {
      if (file.left_out) kept.push_back({(listing.folder / file.path).string(), "is named by data.left_out"});
    }
    if (!kept.empty()) warnings_.push_back(str(listing.folder.string(), ": goes on without ", describe(kept)));
  }

  const ImageFolderConfig& config_;
  const std::string& root_;
  std::vector<BadFile>* bad_;
  std::optional<ImageListing> training_;  // folder and classes of the training split
  std::vector<std::string> warnings_;
};

// Folders of the splits below root, in the order in which they are read, without repeats.
std::vector<std::string> split_folders(const ImageFolderConfig& config) {
  std::vector<std::string> folders{config.train.value_or("train")};
  const auto add = [&](const std::string& folder) {
    if (std::ranges::find(folders, folder) == folders.end()) folders.push_back(folder);
  };
  if (config.val.is_string()) add(config.val.as_string());
  add(config.test.value_or("test"));
  return folders;
}

void check_left_out(const ImageFolderConfig& config) {
  const std::vector<std::string> folders = split_folders(config);
  std::set<std::string> seen;
  for (const LeftOutImage& image : config.left_out.value_or(std::vector<LeftOutImage>())) {
    TESSERA_CHECK(seen.insert(image.file).second, ConfigError, "data.left_out: ", image.file, " stands there twice");
    const bool known =
        std::ranges::any_of(folders, [&](const std::string& folder) { return path_in(folder, image).has_value(); });
    TESSERA_CHECK(known, ConfigError, "data.left_out: ", image.file, " lies in no folder of a split");
  }
}

// The name must lead to a folder below root. An absolute path would ignore root.
bool is_folder_name(const std::string& name) { return !name.empty() && name.front() != '/'; }

// Whether the file has changed since it was listed, by its length and time of writing.
bool changed(const fs::path& path, const ImageFile& file) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error || bytes != file.bytes) return true;
  const auto written = fs::last_write_time(path, error).time_since_epoch().count();
  return error || written != file.written;
}

// The cache entry may be damaged. Then the result is empty and the numbers are measured again.
std::optional<Normalization> to_normalization(const std::optional<Value>& value) {
  if (!value) return {};
  Normalization result;
  std::vector<ConfigProblem> problems;
  read(*value, result, "", problems);
  const bool sound = problems.empty() && result.mean.size() == 3 && result.stddev.size() == 3;
  return sound ? std::optional(result) : std::nullopt;
}

}  // namespace

ImageFolder::ImageFolder(ImageListing listing, std::string folder_name, std::int64_t resize, std::int64_t crop)
    : folder_(std::move(listing.folder)),
      folder_name_(std::move(folder_name)),
      files_(std::move(listing.files)),
      resize_(resize),
      crop_(crop) {
  TESSERA_CHECK(crop >= 1 && crop <= resize, ConfigError, "data.crop is ", crop, "; must be 1..data.resize, which is ", resize);
  name = "image-folder";
  classes = std::move(listing.classes);
  std::vector<std::int64_t> truth;
  for (const ImageFile& item : files_) truth.push_back(item.label);
  labels = Tensor::from(truth, {static_cast<std::int64_t>(truth.size())});
}

void ImageFolder::read(std::int64_t index, const Framing& framing, std::span<std::uint8_t> pixels) const {
  const Image image = decode(file(index));
  resample(image, choose_frame(framing, image.height, image.width, resize_, crop_), crop_, pixels);
}

Image ImageFolder::decode(const ImageFile& file) const {
  const fs::path path = folder_ / file.path;
  TESSERA_CHECK(!file.left_out, IoError, path.string(), ": is named by data.left_out");
  try {
    return read_image(path);
  } catch (const IoError& error) {
    const std::string reason = std::string(error.what()).substr(path.string().size() + 2);  // after "path: "
    const BrokenImage broken{{.file = (fs::path(folder_name_) / file.path).string(),
                              .bytes = static_cast<std::int64_t>(file.bytes),
                              .ends = file.ends},
                             reason};
    {
      const std::lock_guard lock(broken_mutex_);
      if (std::ranges::find(broken_, broken.file, &BrokenImage::file) == broken_.end()) broken_.push_back(broken);
    }
    throw IoError(str(error.what(),
                      "; tessera data check lists all such files, data.on_bad_image: skip leaves them out of a "
                      "new run, and tessera resume RUN data.on_bad_image=skip out of one that has begun"));
  }
}

std::vector<BrokenImage> ImageFolder::met_broken() const {
  const auto met = [this] {
    const std::lock_guard lock(broken_mutex_);
    return broken_;
  };
  if (met().empty()) return {};
  for (const ImageFile& file : files_) {  // other files may have broken too; only this object knows their old state
    if (file.left_out || !changed(folder_ / file.path, file)) continue;
    try {
      decode(file);
    } catch (const IoError&) {  // decode() has noted it
    }
  }
  return met();
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

void ImageFolderConfig::fields(Fields& f) {
  image_fields(f, /*in_folders=*/true);
  f.add("train", train,
        {.help = "folder of training images below root; train without it", .example = "training", .observable = "plan"});
  f.add("test", test, {.help = "folder of test images below root; test without it", .example = "val", .observable = "plan"});
  f.add("resize", resize,
        {.help = "length that the shorter side is resized to; 256 without it",
         .range = between(1, 16384),
         .example = "232",
         .observable = "bytes"});
  f.add("crop", crop,
        {.help = "side of the square cut out of the resized image; 224 without it",
         .range = between(1, 16384),
         .example = "192",
         .observable = "plan"});
  f.add("on_bad_image", on_bad_image,
        {.help = "error stops at a file that cannot be decoded; skip decodes all files first and leaves those out",
         .choices = {"error", "skip"},
         .example = "skip",
         .observable = "plan"});
  f.add("left_out", left_out,
        {.help = "images that a run goes on without, as they were when it began; resume RUN data.on_bad_image=skip writes it",
         .example = "[{file: train/cat/1.jpg, bytes: 5, ends: d41d8cd98f00b204e9800998ecf8427e}]",
         .observable = "bytes"});
  f.require(is_folder_name(train.value_or("train")), "train", "needs the name of a folder below root");
  f.require(!val.is_string() || is_folder_name(val.as_string()), "val", "needs the name of a folder below root");
  f.require(is_folder_name(test.value_or("test")), "test", "needs the name of a folder below root");
  f.require(crop.value_or(kCrop) <= resize.value_or(kResize), "crop",
            str("is ", crop.value_or(kCrop), "; must be at most resize, which is ", resize.value_or(kResize)));
}

ImageSplits ImageFolderConfig::read_images(const std::string& root, std::uint64_t seed, std::vector<BadFile>* bad) const {
  check_left_out(*this);
  SplitReader reader(*this, root, bad);
  const auto training = reader.read(train.value_or("train"), "train");
  ImageSplits splits;
  if (val.is_string()) {
    splits.train = all_of(training);
    splits.val = without_left_out(all_of(reader.read(val.as_string(), "val")));
  } else {
    TrainVal split = split_validation(training, val.as_double(), seed);
    splits.train = std::move(split.train);
    splits.val = without_left_out(std::move(split.val));
  }
  splits.test = without_left_out(all_of(reader.read(test.value_or("test"), "test")));
  splits.warnings = reader.take_warnings();
  return splits;
}

std::vector<BrokenImage> ImageFolderConfig::undecodable_images(const std::string& root) const {
  std::vector<BrokenImage> broken;
  for (const std::string& folder : split_folders(*this)) {
    const std::vector<BrokenImage> found = undecodable(list_images(fs::path(root) / folder), folder);
    broken.insert(broken.end(), found.begin(), found.end());
  }
  return broken;
}

// The same images give the same bits, so the numbers are kept in the cache.
Normalization ImageFolderConfig::measure(const ImageSubset& training) const {
  const ImageSubset images = without_left_out(training);
  Xxh3Stream samples;
  samples.update({reinterpret_cast<const char*>(images.indices.data()), images.indices.size() * sizeof(images.indices[0])});
  const AnswerCache cache(str("mean and std, 1: ", fingerprint(*images.images), ' ', samples.hex(), ' ', kMeasuredImages));
  if (const std::optional<Normalization> known = to_normalization(cache.find())) return *known;
  const Normalization measured = measure_normalization(images, kMeasuredImages);
  cache.store(write(measured));
  return measured;
}

}  // namespace tessera
