// Images of an image-folder that cannot be decoded: those that a run met, and those that it goes on without. Both are described
// as they were when the run began, because the fingerprint of its data covers them in that state.
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

// manifest_keys() (train/data/splits.h) of the data as it is read by a run that goes on without form.left_out. Gives no
// warnings.
Value keys_without_left_out(const ImageFolderConfig& form, const std::string& root, std::uint64_t seed);
// Sets mean and std of a `data` block to what the manifest's preprocessing keeps of them.
void keep_statistics(const Value& manifest, Value& data);

}  // namespace tessera
