// Sums over ranks while the thread that makes the values goes on with others: gradients during a backward.
#pragma once

#include <memory>
#include <string_view>

#include "core/comm/buckets.h"

namespace tessera {

// By a thread of its own, through Communicator::beside(); where there is none, and on a GPU, whose work is queued, by the
// caller's. The bytes are the same.
class BackgroundSums {
 public:
  // Collective. `ranks` outlives it. Buckets are those of `bytes`. The first one, and the first one after each finish(),
  // has at most kFirstBucketBytes, or a single tensor.
  explicit BackgroundSums(Communicator& ranks, std::size_t bytes = kBucketBytes);
  // Behind a sum that is not finished, because this rank fails, the thread is left to the end of the process: it may have to wait
  // for ranks that will not come.
  ~BackgroundSums();
  BackgroundSums(const BackgroundSums&) = delete;
  BackgroundSums& operator=(const BackgroundSums&) = delete;

  // The tensor becomes its sum over the ranks before finish() returns, and is not touched by others until then. On all ranks the
  // same names in the same order. Throws what Communicator::all_reduce() throws of a tensor that it does not take.
  void add(const Tensor& tensor, std::string_view name);
  // Waits for all sums; throws what one of them has come to.
  void finish();

 private:
  class Thread;
  void sum(Bucket bucket);

  Communicator& ranks_;
  std::size_t bytes_;
  bool first_ = true;  // bucket_ is the first one
  Bucket bucket_;
  std::shared_ptr<Thread> thread_;  // null without beside()
};

}  // namespace tessera
