// Copies a loader's batches to a GPU: a batch is on its way while the network computes with the one before it.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/device/staging.h"
#include "train/data/batch.h"

namespace tessera {

class DeviceFeed {
 public:
  // One batch is read by kernels, one is on its way, and the host fills a third while the copies of the second wait for kernels.
  static constexpr int kSlots = 3;

  // `source` makes the batches in order, on the host; one that throws is asked for the same batch again.
  DeviceFeed(std::unique_ptr<StagingRing> ring, std::function<Batch()> source);

  // The next batch, on the device; to be read by work that is queued before the next call. Rethrows the error of making this
  // batch, and the next call asks for the same batch again. An error of the batch after it is thrown by the call that asks for
  // that one.
  Batch next();

  // Drops the batch on its way. To be called after the source has moved to another position.
  void restart();

 private:
  void send_next();

  std::unique_ptr<StagingRing> ring_;
  std::function<Batch()> source_;
  std::vector<std::string> names_;  // of the parts of its batches, the same in all
  bool ahead_ = false;  // a batch is on its way
  std::exception_ptr failure_;  // of the batch that would be on its way
};

}  // namespace tessera
