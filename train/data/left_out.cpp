#include "train/data/left_out.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/support/error.h"
#include "train/data/image.h"
#include "train/data/image_folder.h"
#include "train/data/image_listing.h"
#include "train/data/labelled_images.h"
#include "train/data/splits.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Accepts folder/class/name. An absolute path would ignore root.
bool is_image_name(const std::string& file) { return !file.starts_with('/') && std::ranges::count(file, '/') >= 2; }

bool is_hash(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

void LeftOutImage::fields(Fields& f) {
  f.add("file", file,
        {.help = "the image, below root: split, class, name",
         .example = "train/cat/1.jpg",
         .observable = "bytes",
         .required = true});
  f.add("bytes", bytes,
        {.help = "its length when the run began",
         .range = at_least(0),
         .example = "5",
         .observable = "none: a part of the data's fingerprint",
         .required = true});
  f.add("ends", ends,
        {.help = "XXH3-128 of its first and last 16 KiB when the run began",
         .example = "d41d8cd98f00b204e9800998ecf8427e",
         .observable = "none: a part of the data's fingerprint",
         .required = true});
  f.require(file.empty() || is_image_name(file), "file", "needs an image below root, such as train/cat/1.jpg");
  f.require(ends.empty() || is_hash(ends), "ends", "needs 32 hexadecimal digits");
}

void BrokenImage::fields(Fields& f) {
  LeftOutImage::fields(f);
  f.add("reason", reason, {.help = "what is wrong with it"});
}

std::string BrokenImage::path(const std::string& root) const { return (fs::path(root) / file).string(); }

ImageState state_of(const LeftOutImage& image, const std::string& root) {
  const fs::path path = fs::path(root) / image.file;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return ImageState::gone;
  ImageFile file;
  static_cast<void>(probe_image(path, file));
  if (static_cast<std::int64_t>(file.bytes) != image.bytes || file.ends != image.ends) return ImageState::another_file;
  try {
    read_image(path);
    return ImageState::whole;
  } catch (const IoError&) {
    return ImageState::undecodable;
  }
}

Value keys_without_left_out(const ImageFolderConfig& form, const std::string& root, std::uint64_t seed) {
  ImageSplits splits = form.read_images(root, seed, nullptr);
  splits.normalization =
      form.normalization(splits.train.images->sample_shape().dim(2), [&] { return form.measure(splits.train); });
  return manifest_keys(labelled_images(std::move(splits), form, seed));
}

void keep_statistics(const Value& manifest, Value& data) {
  const Value* const kept = manifest.find(kPreprocessingKey);
  if (kept == nullptr) return;
  for (const char* const key : {"mean", "std"}) {
    const Value* const statistics = kept->find(key);
    if (statistics != nullptr) data.set(key, *statistics);
  }
}

}  // namespace tessera
