// The norm of many tensors' elements together, from sums over blocks of fixed size in fixed order: the threads move no bit.
// Kernels that read the elements anyway walk the blocks with it, so that the norm costs no second read of memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/cpu/channel_blocks.h"
#include "core/support/rounding.h"

namespace tessera::cpu {

class NormBlocks {
 public:
  static constexpr std::int64_t kBlock = 16384;

  void add_tensor(std::int64_t elements) { partial_.emplace_back(static_cast<std::size_t>(ceil_div(elements, kBlock))); }

  // Walks a thread's share [begin, end) of the `count` values of one tensor: sums the blocks that begin in it, and calls
  // body(begin, end) for each part, right after the sum has read it. Inside blocks parts are small: during a long sum, no line of
  // the body's other arrays would be fetched.
  template <class T, class Body>
  void walk(std::size_t tensor, const T* values, std::int64_t count, std::int64_t begin, std::int64_t end, const Body& body) {
    const std::int64_t first = std::min(ceil_div(begin, kBlock) * kBlock, end);
    if (begin < first) body(begin, first);
    for (std::int64_t block = first; block < end; block += kBlock) {
      const std::int64_t behind = std::min(block + kBlock, count);
      SquaredSum sum;
      for (std::int64_t at = block; at < behind; at += kPart) {  // the sum reads the whole block, the body its part below `end`
        const std::int64_t part_end = std::min(at + kPart, behind);
        sum.add(values + at, part_end - at);
        if (at < end) body(at, std::min(part_end, end));
      }
      partial_[tensor][static_cast<std::size_t>(block / kBlock)] = sum.total();
    }
  }

  double norm() const {
    double sum = 0;
    for (const std::vector<double>& blocks : partial_) sum += std::accumulate(blocks.begin(), blocks.end(), 0.0);
    return std::sqrt(sum);
  }

 private:
  static constexpr int kLanes = 4, kSums = 8;
  static constexpr std::int64_t kPart = 512;
  static_assert(kBlock % kPart == 0 && kPart % (kSums * kLanes) == 0);
  using Doubles = Lanes<double, kLanes>::type;

  // Sum of squares of one block. Keeps enough partial sums at once to hide the latency of an addition.
  class SquaredSum {
   public:
    template <class T>
    void add(const T* values, std::int64_t count) {
      std::int64_t i = 0;
      for (; i + kSums * kLanes <= count; i += kSums * kLanes) {
#pragma GCC unroll 8
        for (int s = 0; s < kSums; ++s) {
          const Doubles v = __builtin_convertvector((load_lanes<T, kLanes>(values + i + s * kLanes)), Doubles);
          sums_[s] += v * v;
        }
      }
      for (; i < count; ++i) rest_ += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    double total() const {
      Doubles all = sums_[0];
      for (int s = 1; s < kSums; ++s) all += sums_[s];
      double sum = rest_;
      for (int lane = 0; lane < kLanes; ++lane) sum += all[lane];
      return sum;
    }

   private:
    Doubles sums_[kSums]{};
    double rest_ = 0;
  };

  std::vector<std::vector<double>> partial_;
};

}  // namespace tessera::cpu
