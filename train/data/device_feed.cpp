#include "train/data/device_feed.h"

#include <utility>
#include <vector>

namespace tessera {

DeviceFeed::DeviceFeed(std::unique_ptr<StagingRing> ring, std::function<Batch()> source)
    : ring_(std::move(ring)), source_(std::move(source)) {}

Batch DeviceFeed::next() {
  if (!ahead_ && !failure_) send_next();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  std::vector<Batch::Part> parts;
  for (const Tensor& tensor : ring_->take()) parts.push_back({names_.at(parts.size()), tensor});
  ahead_ = false;
  send_next();
  return Batch(std::move(parts));
}

void DeviceFeed::send_next() {
  try {
    const Batch batch = source_();
    std::vector<Tensor> tensors;
    names_.clear();
    for (const Batch::Part& part : batch.parts()) {
      names_.push_back(part.name);
      tensors.push_back(part.tensor);
    }
    ring_->push(tensors);
    ahead_ = true;
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void DeviceFeed::restart() {
  ring_->drop();
  ahead_ = false;
  failure_ = nullptr;
}

}  // namespace tessera
