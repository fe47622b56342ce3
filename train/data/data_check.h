// What `tessera data check` finds: how many samples each class and split has, files that cannot be read, images that are there
// more than once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "train/data/builtin.h"

namespace tessera {

struct SplitReport {
  std::string name;  // "train", "val", "test"
  std::vector<std::int64_t> counts;  // per class
  std::int64_t samples = 0;
  // Sizes of the images as stored; 0 without samples.
  std::int64_t min_height = 0, max_height = 0;
  std::int64_t min_width = 0, max_width = 0;
};

// Images whose size and decoded pixels are equal, whatever their files, names and metadata.
struct Duplicates {
  struct Member {
    std::string split;
    std::string origin;
    std::string class_name;

    void fields(Fields& f);
  };
  std::vector<Member> members;  // by split, then sample
  bool across_splits = false;
  bool across_classes = false;  // one of the labels is wrong

  void fields(Fields& f);
};

struct DataReport {
  std::vector<std::string> classes;
  std::vector<SplitReport> splits;
  std::vector<BadFile> bad;
  std::vector<Duplicates> duplicates;  // those across splits first

  // No bad file, no image in two splits or under two labels. An image twice in one class of one split is only reported.
  bool clean() const;
  void fields(Fields& f);
};

// Decodes every image, on the OpenMP threads. Files that fail are in no split. Throws what load_images() throws for a set that
// cannot be opened.
DataReport check_data(const DataConfig& config, std::uint64_t seed);

std::string to_text(const DataReport& report);

}  // namespace tessera
