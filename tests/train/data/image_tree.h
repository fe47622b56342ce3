// A folder of images for tests, removed at the end of the scope.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/core/io/temporary_folder.h"
#include "tests/support/image_files.h"

namespace tessera::testing {

class ImageTree {
 public:
  const std::filesystem::path& root() const { return folder_.path(); }
  std::string path(const std::string& name) const { return folder_ / name; }

  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((root() / name).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  // A PNG whose red is `value` all over; green and blue are the pattern.
  void add(const std::string& name, std::uint8_t value, unsigned height = 12, unsigned width = 15) const {
    Bytes pixels = pattern(height, width);
    for (std::size_t i = 0; i < pixels.size(); i += 3) pixels[i] = value;
    write(name, encode_png(height, width, pixels));
  }
  // `count` images of each of the classes "cat" and "dog" in folder `split`, all different.
  void add_split(const std::string& split, int count, int first = 0) const {
    for (int i = 0; i < count; ++i) {
      add(split + "/cat/" + std::to_string(i) + ".png", static_cast<std::uint8_t>(first + i));
      add(split + "/dog/" + std::to_string(i) + ".png", static_cast<std::uint8_t>(128 + first + i), 15, 12);
    }
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace tessera::testing
