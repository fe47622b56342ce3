// The phases of the fused Tucker-2 convolution's kernels, walked on the host block after block and thread after thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/cuda/tucker_conv/chain.h"
#include "core/cuda/tucker_conv/correlate.h"

namespace tessera::cuda {

// Shared memory of a block: NaN at its start, with a guard behind.
class SharedMemory {
 public:
  explicit SharedMemory(int bytes) : bytes_(static_cast<std::size_t>(bytes)), memory_(bytes_ / 16 + 2) { clear(); }
  char* get() { return reinterpret_cast<char*>(memory_.data()); }
  void clear() { std::memset(memory_.data(), 0xff, memory_.size() * sizeof(FourFloats)); }
  bool guard_intact() {
    for (std::size_t i = bytes_; i < memory_.size() * sizeof(FourFloats); ++i) {
      if (get()[i] != '\xff') return false;
    }
    return true;
  }

 private:
  struct alignas(16) FourFloats {
    float at[4];
  };
  std::size_t bytes_;
  std::vector<FourFloats> memory_;
};

template <class Math>
void walk_chain(const ChainArguments<typename Math::Storage>& args) {
  using Block = HostBlock<typename Math::State>;
  SharedMemory shared(chain_layout(args.shape, Math::kShape).total);
  Block block(kBlockThreads);
  for (std::int64_t index = 0; index < args.shape.grid().blocks(); ++index) {
    shared.clear();
    run_chain<Math>(block, args, index, shared.get());
  }
  EXPECT_TRUE(shared.guard_intact());
}

template <class Math>
void walk_correlations(const CorrelateArguments<typename Math::Storage>& args, int walkers) {
  using Block = HostBlock<CorrelateState>;
  int elements = 0;
  int groups = 0;
  for (int job = 0; job < args.count; ++job) {
    elements = std::max(elements, args.jobs[job].shape.shared_elements());
    groups += args.jobs[job].shape.groups();
  }
  SharedMemory shared(elements * static_cast<int>(sizeof(typename Math::Storage)));
  Block block(kBlockThreads);
  for (int walker = 0; walker < walkers; ++walker) {
    for (int row = 0; row < groups; ++row) {
      shared.clear();
      int index = row;
      const int job = find_job(args, index);
      const CorrelateBlock of{.job = job, .group = args.jobs[job].shape.group(index), .walker = walker, .walkers = walkers};
      Correlate<Math, Block>(block, args, of, shared.get()).run();
    }
  }
  EXPECT_TRUE(shared.guard_intact());
}

}  // namespace tessera::cuda
