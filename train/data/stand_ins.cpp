#include "train/data/stand_ins.h"

#include <algorithm>

#include "core/support/error.h"

namespace tessera {

StandIns::StandIns(const ImageSubset& training, std::uint64_t seed) : stream_(seed, "data", "stand-in") {
  const ImageDataset& images = *training.images;
  const std::int64_t* const labels = images.labels.data<std::int64_t>();
  std::map<std::int64_t, std::shared_ptr<Samples>> by_label;
  for (const std::int64_t sample : training.indices) {
    if (!images.is_left_out(sample)) continue;
    std::shared_ptr<Samples>& members = by_label[labels[sample]];
    if (!members) members = std::make_shared<Samples>();
    candidates_[sample] = members;
  }
  if (candidates_.empty()) return;
  for (const std::int64_t sample : training.indices) {
    const auto members = by_label.find(labels[sample]);
    if (members != by_label.end() && !images.is_left_out(sample)) members->second->push_back(sample);
  }
  for (const auto& [sample, members] : candidates_) {
    TESSERA_CHECK(!members->empty(), IoError, images.origin(sample), ": class '",
                  images.classes[static_cast<std::size_t>(labels[sample])],
                  "' has no image left to train on; repair one, or train a new run");
  }
}

std::int64_t StandIns::of(std::int64_t sample, std::int64_t epoch) const {
  const auto found = candidates_.find(sample);
  if (found == candidates_.end()) return sample;
  const Samples& members = *found->second;
  const std::int64_t drawn = random_below(stream_, static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(sample),
                                          static_cast<std::int64_t>(members.size()));
  return members[static_cast<std::size_t>(drawn)];
}

}  // namespace tessera
