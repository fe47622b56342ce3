// CIFAR-10 and CIFAR-100 in their binary version (https://www.cs.toronto.edu/~kriz/cifar.html): records of label bytes and
// three 32x32 colour planes, which become [n, 32, 32, 3].
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "train/data/image_config.h"

namespace tessera {

// The form of the data block.
struct CifarConfig : ImageConfig {
  static constexpr std::array<std::string_view, 2> kNames{"cifar10", "cifar100"};
  static constexpr bool kReadsFiles = true;
  std::string name = "cifar10";
  void fields(Fields& f) { image_fields(f); }

  Shape sample_shape() const { return {1, 32, 32, 3}; }
  ImageSplits read_images(const std::string& root, std::uint64_t seed, std::vector<BadFile>* bad) const;
};

// Which files make a split, and what a record looks like.
struct CifarLayout {
  std::vector<std::string> files;
  std::int64_t records_per_file = 10000;
  int label_bytes = 1;  // the last one is the label used: CIFAR-100 stores coarse, then fine
  std::vector<std::string> classes;
};
// split is "train" or "test".
CifarLayout cifar10_layout(std::string_view split);
CifarLayout cifar100_layout(std::string_view split);

// Throws IoError naming the file, with expected and found bytes when its size is wrong, and the record when a label is out of
// range.
MemoryDataset load_cifar(const std::filesystem::path& root, std::string_view name, const CifarLayout& layout);

}  // namespace tessera
