// The core convolution's kernels on the host: the same blocks, threads, stages and copies, one after the other. Throws where a
// copy leaves its operand or shared memory, is not aligned, or two threads write one element.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/cuda/core_conv/core_conv.h"
#include "core/support/error.h"

namespace tessera::core_conv_walk {

using namespace cuda::core_conv;
using Floats = std::vector<float>;

// Two buffers of shared memory; NaN until something is copied there.
class Shared {
 public:
  explicit Shared(int floats) : quads_(static_cast<std::size_t>(floats) / 4 + 1), floats_(floats) { forget(0, floats); }
  float* at(int offset) { return reinterpret_cast<float*>(quads_.data()) + offset; }
  void forget(int begin, int count) { std::fill_n(at(begin), count, std::numeric_limits<float>::quiet_NaN()); }

  template <int kWidth>
  void copy(int buffer, int size, const Floats& source, const Copy& copy) {
    const int end = copy.destination + kWidth;
    TESSERA_CHECK(copy.destination >= 0 && end <= size && buffer + end <= floats_, InternalError, "copy behind shared memory");
    TESSERA_CHECK(copy.destination % kWidth == 0 && copy.source % kWidth == 0, InternalError, "copy is not aligned");
    float* const target = at(buffer + copy.destination);
    TESSERA_CHECK(std::isnan(*target), InternalError, "two copies write one place");
    if (!copy.inside) {
      std::fill_n(target, kWidth, 0.0f);
      return;
    }
    TESSERA_CHECK(copy.source >= 0 && static_cast<std::size_t>(copy.source + kWidth) <= source.size(), InternalError,
                  "copy behind its operand");
    std::memcpy(target, source.data() + copy.source, kWidth * sizeof(float));
  }

 private:
  std::vector<Quad> quads_;
  int floats_;
};

// A result whose elements are each written once.
class Target {
 public:
  explicit Target(std::size_t size) : values_(size), written_(std::make_unique<std::atomic<char>[]>(size)) {}
  void store(std::size_t at, float value) {
    TESSERA_CHECK(at < values_.size(), InternalError, "store behind the result");
    TESSERA_CHECK(written_[at].exchange(1) == 0, InternalError, "two threads store one element");
    values_[at] = value;
  }
  const Floats& values() const {
    for (std::size_t i = 0; i < values_.size(); ++i)
      TESSERA_CHECK(written_[i] == 1, InternalError, "element ", i, " is not stored");
    return values_;
  }

 private:
  Floats values_;
  std::unique_ptr<std::atomic<char>[]> written_;
};

// The stages of a block as both kernels run them: the next one is copied to the other buffer before this one is multiplied.
template <class Block, class CopyStage>
void run_stages(const Block& block, Shared& shared, std::vector<typename Block::Sums>& sums, CopyStage&& copy_stage) {
  constexpr int kStage = Block::kSizes.stage;
  const int end = block.end();
  int buffer = 0, other = kStage, stage = block.begin();
  if (stage < end) copy_stage(stage, buffer);
  for (; stage < end; ++stage) {
    shared.forget(other, kStage);
    if (stage + 1 < end) copy_stage(stage + 1, other);
    for (int thread = 0; thread < Block::kSizes.threads; ++thread) {
      block.accumulate(shared.at(buffer), thread, sums[static_cast<std::size_t>(thread)]);
    }
    std::swap(buffer, other);
  }
}

// Calls copy(item) as `threads` threads do, thread by thread.
template <class CopyItem>
void deal(int threads, int count, CopyItem&& copy) {
  for (int thread = 0; thread < threads; ++thread) {
    for (int item = thread; item < count; item += threads) copy(item);
  }
}

// What run_core_conv() does, on the host. `bias` may be empty.
Floats run(const cuda::CoreConvPlan& plan, const Floats& a, const Floats& b, const Floats& bias);

}  // namespace tessera::core_conv_walk
