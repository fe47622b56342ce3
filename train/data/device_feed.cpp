#include "train/data/device_feed.h"

#include <array>
#include <utility>
#include <vector>

namespace tessera {

DeviceFeed::DeviceFeed(std::unique_ptr<StagingRing> ring, std::function<Batch()> source)
    : ring_(std::move(ring)), source_(std::move(source)) {}

Batch DeviceFeed::next() {
  if (!ahead_ && !failure_) send_next();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  const std::vector<Tensor> batch = ring_->take();
  ahead_ = false;
  send_next();
  return {batch.at(0), batch.at(1)};
}

void DeviceFeed::send_next() {
  try {
    const Batch batch = source_();
    const std::array<Tensor, 2> tensors{batch.x, batch.y};
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
