// Batches of a subset for (epoch, position), assembled ahead of time by worker threads. A batch is a pure function of the
// subset, the options and its position: neither the number of threads nor where a run was resumed changes a byte.
#pragma once

#include <cstdint>
#include <memory>

#include "core/device/device.h"
#include "train/data/dataset.h"

namespace tessera {

class DeviceFeed;

struct LoaderOptions {
  std::int64_t batch = 128;
  bool shuffle = true;  // order of epoch e: random_permutation({seed, "data", "order"}, e, n)
  bool drop_last = true;  // false: the last batch of an epoch is smaller
  bool augment = true;  // samples changed at random as the data set does for training
  std::uint64_t seed = 0;
  int threads = 2;  // 0 assembles in the caller
  int prefetch = 4;  // batches held ahead of the caller at most
  Device device = {};  // where batches go; to a GPU they are copied ahead of time, see DeviceFeed
  // With shares > 1 a batch is part `share`, from 0, of the `shares` equal, consecutive parts of the whole batch.
  int share = 0;
  int shares = 1;
};
// In order, every sample once, not augmented.
LoaderOptions evaluation_options(std::int64_t batch, int threads, Device device = {});

// Why options.shares ranks cannot have equal parts of every batch of an epoch of so many samples; empty where they can.
std::string why_no_equal_shares(std::int64_t samples, const LoaderOptions& options);

class Loader {
 public:
  // Throws ConfigError when batch < 1, when drop_last leaves an epoch without a batch, or when a batch has no equal shares.
  Loader(Subset subset, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  std::int64_t batches_per_epoch() const noexcept;

  // The batch at the position, which then moves on, into the next epoch after the last batch. Rethrows what assembling
  // that batch threw and stays there. Calls come from one thread. On a GPU the batch is for work that is queued before the next
  // call.
  Batch next();
  // Moves to batch `batch` of `epoch`: what resume does. Throws InternalError outside 0..batches_per_epoch()-1.
  void seek(std::int64_t epoch, std::int64_t batch);
  std::int64_t epoch() const noexcept;
  std::int64_t batch() const noexcept;

 private:
  class Assembler;
  class Prefetcher;
  Batch fetch();  // the batch at fetched_, on the host

  std::unique_ptr<const Assembler> assembler_;
  std::int64_t position_ = 0;  // batches since the start of epoch 0
  std::int64_t fetched_ = 0;  // the position that fetch() takes next; with a feed it is one ahead
  std::unique_ptr<Prefetcher> prefetcher_;  // null with 0 threads
  std::unique_ptr<DeviceFeed> feed_;  // null on the CPU
};

}  // namespace tessera
