// MNIST and Fashion-MNIST in their IDX files (http://yann.lecun.com/exdb/mnist): big-endian header, then bytes; plain or gzip.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "train/data/image_config.h"

namespace tessera {

// The form of the data block.
struct IdxConfig : ImageConfig {
  static constexpr std::array<std::string_view, 2> kNames{"mnist", "fashion-mnist"};
  static constexpr bool kReadsFiles = true;
  std::string name = "mnist";
  void fields(Fields& f) { image_fields(f); }

  Shape sample_shape() const { return {1, 28, 28, 1}; }
  ImageSplits read_images(const std::string& root, std::uint64_t seed, std::vector<BadFile>* bad) const;
};

// An IDX file of unsigned bytes: u8 tensor of the header's shape. Reads gzip when the content says so, whatever the name.
// Throws IoError naming the file, and the expected and found sizes, on a bad magic number, a short or a long file.
Tensor read_idx(const std::filesystem::path& path);

// The pair <stem>-images-idx3-ubyte and <stem>-labels-idx1-ubyte below root, each with or without ".gz" and with '-' or '.'
// before "idx". split is "train" or "test" (file stem "t10k"). name is "mnist" or "fashion-mnist" and gives the class names.
// Throws IoError listing the names tried when a file is missing, and on counts that differ.
MemoryDataset load_idx(const std::filesystem::path& root, std::string_view name, std::string_view split);

}  // namespace tessera
