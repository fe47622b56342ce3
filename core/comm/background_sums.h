// Sums over ranks while the thread that makes the values goes on with others: gradients during a backward.
#pragma once

#include <memory>
#include <string_view>

#include "core/comm/buckets.h"

namespace tessera {

// A thread of its own takes the sums, through Communicator::beside(). Where there is no beside(), and on a GPU, whose work is
// queued, the caller's thread takes them. The bytes are the same.
class BackgroundSums {
 public:
  // Collective. `ranks` outlives it. Buckets are those of `bytes`. The first one, and the first one after each finish(),
  // has at most kFirstBucketBytes, or a single tensor.
  explicit BackgroundSums(Communicator& ranks, std::size_t bytes = kBucketBytes);
  // Where a sum is not finished, because this rank fails, the thread is left running until the process ends: it may be waiting
  // for ranks that will not come.
  ~BackgroundSums();
  BackgroundSums(const BackgroundSums&) = delete;
  BackgroundSums& operator=(const BackgroundSums&) = delete;

  // The tensor becomes its sum over the ranks before finish() returns, and is not touched by others until then. On all ranks the
  // same names in the same order. Throws what Communicator::all_reduce() throws of a tensor that it does not take.
  void add(const Tensor& tensor, std::string_view name);
  // Waits for all sums; throws the error of any of them.
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
