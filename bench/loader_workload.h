// What loader_bench times: the files of an image folder as normalised batches, by the loader that a run trains with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "train/data/builtin.h"

namespace tessera::bench {

struct LoaderCase {
  // "training": a random part of the image of at least a quarter of its area, resized, and mirrored at random; shuffled.
  // "evaluation": the shorter side resized to 256, the centre; in order.
  std::string frame;
  std::int64_t threads;  // of the loader
  std::int64_t batch;
};

class LoaderWorkload {
 public:
  // `root` has a folder `train` of class folders. Throws ConfigError on another frame, and where the files make no whole batches.
  LoaderWorkload(const std::filesystem::path& root, const LoaderCase& timed);

  std::int64_t images() const { return data_.train.size(); }
  // Milliseconds from a new loader to the last batch of an epoch.
  double run() const;
  // The first `count` images as they are evaluated, [count, 3, 224, 224].
  std::vector<float> values(std::int64_t count) const;

 private:
  DataConfig config_;
  LoaderOptions options_;
  DataSplits data_;
};

}  // namespace tessera::bench
