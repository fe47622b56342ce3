// What a training set reads in the place of images that the run goes on without: another image of the same class and split. So
// batches, epochs and the share of each class stay what they were when the run began.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/rng.h"
#include "train/data/image_dataset.h"

namespace tessera {

class StandIns {
 public:
  StandIns() = default;
  // Throws IoError where a class has no image left to stand in.
  StandIns(const ImageSubset& training, std::uint64_t seed);

  // The sample to read: a function of (seed, epoch, sample), and the sample itself unless it is left out.
  std::int64_t of(std::int64_t sample, std::int64_t epoch) const;

 private:
  using Samples = std::vector<std::int64_t>;

  RngStream stream_;
  std::map<std::int64_t, std::shared_ptr<const Samples>> candidates_;  // of each sample that is left out
};

}  // namespace tessera
