// Batches of a subset for (epoch, position), assembled ahead of time by worker threads. A batch is a pure function of the
// subset, the options and its position: neither the number of threads nor where a run was resumed changes a byte.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/tensor.h"
#include "train/data/transforms.h"

namespace tessera {

struct Batch {
  Tensor x;  // f32 [b, h, w, c], normalised
  Tensor y;  // i64 [b]
};

struct LoaderOptions {
  std::int64_t batch = 128;
  bool shuffle = true;     // order of epoch e: random_permutation({seed, "data", "order"}, e, n)
  bool drop_last = true;   // false: the last batch of an epoch is smaller
  std::vector<AugmentConfig> augment = {};
  Normalization normalization = {};
  std::uint64_t seed = 0;
  int threads = 2;         // 0 assembles in the caller
  int prefetch = 4;        // batches held ahead of the caller at most
};
// In order, every sample once, not augmented.
LoaderOptions evaluation_options(std::int64_t batch, const Normalization& normalization, int threads);

class Loader {
 public:
  // Throws ConfigError when batch < 1, when drop_last leaves an epoch without a batch, or when the normalisation does not fit.
  Loader(Subset subset, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  std::int64_t batches_per_epoch() const noexcept;

  // The batch at the position, which then moves on, into the next epoch after the last batch. Rethrows what assembling
  // that batch threw and stays there. Calls come from one thread.
  Batch next();
  // Moves to batch `batch` of `epoch`: what resume does. Throws InternalError outside 0..batches_per_epoch()-1.
  void seek(std::int64_t epoch, std::int64_t batch);
  std::int64_t epoch() const noexcept;
  std::int64_t batch() const noexcept;

 private:
  class Assembler;
  class Prefetcher;

  std::unique_ptr<const Assembler> assembler_;
  std::int64_t position_ = 0;  // batches since the start of epoch 0
  std::unique_ptr<Prefetcher> prefetcher_;  // null with 0 threads
};

}  // namespace tessera
