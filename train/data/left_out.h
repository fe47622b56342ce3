// Images of an image-folder that cannot be decoded: those that a run met, and those that it goes on without. Both are told as
// they were when the run began, because that is what the fingerprint of its data holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "core/config/value.h"

namespace tessera {

struct ImageFolderConfig;

struct LeftOutImage {
  std::string file;  // below data.root: "train/cat/3.jpg"
  std::int64_t bytes = 0;
  std::string ends;  // as ImageFile::ends
  void fields(Fields& f);

  friend bool operator==(const LeftOutImage&, const LeftOutImage&) = default;
};

struct BrokenImage : LeftOutImage {
  std::string reason;  // "broken PNG: the file ends early"
  void fields(Fields& f);

  std::string path(const std::string& root) const;
};

// What is at its place under `root` now.
enum class ImageState { gone, another_file, undecodable, whole };
ImageState state_of(const LeftOutImage& image, const std::string& root);

// manifest_keys() (train/data/splits.h) of the data as a run reads it that goes on without form.left_out; warns of nothing.
Value keys_without_left_out(const ImageFolderConfig& form, const std::string& root, std::uint64_t seed);
// Sets mean and std of a `data` block to what the manifest's preprocessing keeps of them.
void keep_statistics(const Value& manifest, Value& data);

}  // namespace tessera
