// A folder of images for tests, removed at the end of the scope.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "tests/support/image_files.h"

namespace tessera::testing {

class ImageTree {
 public:
  ImageTree() {
    std::string pattern_text = (std::filesystem::temp_directory_path() / "tessera-images-XXXXXX").string();
    if (mkdtemp(pattern_text.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    root_ = pattern_text;
  }
  ~ImageTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  ImageTree(const ImageTree&) = delete;
  ImageTree& operator=(const ImageTree&) = delete;

  const std::filesystem::path& root() const { return root_; }
  std::string path(const std::string& name) const { return (root_ / name).string(); }

  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << bytes;
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
  std::filesystem::path root_;
};

}  // namespace tessera::testing
