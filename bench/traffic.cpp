#include <immintrin.h>

#include <array>
#include <cstddef>
#include <utility>

#include "bench/stream.h"
#include "core/cpu/parallel.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr std::int64_t kLanes = 8;
constexpr std::size_t kMostArrays = 5;
using Arrays = std::array<float*, kMostArrays>;

// `arrays` holds arrays that are read, then updated ones, then written ones. An update leaves values of 1 as they are.
template <int kReads, int kUpdates, int kWrites, bool kPast>
void move(const Arrays& arrays, std::int64_t count) {
  cpu::parallel_parts(count / kLanes, cpu::parts_for(count), [&](std::int64_t begin, std::int64_t end, int) {
    const __m256 half = _mm256_set1_ps(0.5F), share = _mm256_set1_ps(0.5F / kReads);
    __m256 all = _mm256_setzero_ps();
    for (std::int64_t i = begin * kLanes; i < end * kLanes; i += kLanes) {
      __m256 sum = _mm256_setzero_ps();
#pragma GCC unroll 5
      for (int r = 0; r < kReads; ++r) sum = _mm256_fmadd_ps(share, _mm256_load_ps(arrays[r] + i), sum);
#pragma GCC unroll 5
      for (int u = kReads; u < kReads + kUpdates; ++u) {
        _mm256_store_ps(arrays[u] + i, _mm256_fmadd_ps(half, _mm256_load_ps(arrays[u] + i), sum));
      }
#pragma GCC unroll 5
      for (int w = kReads + kUpdates; w < kReads + kUpdates + kWrites; ++w) {
        if constexpr (kPast)
          _mm256_stream_ps(arrays[w] + i, sum);
        else
          _mm256_store_ps(arrays[w] + i, sum);
      }
      if constexpr (kUpdates + kWrites == 0) all = _mm256_add_ps(all, sum);
    }
    asm volatile("" : : "x"(all) : "memory");
  });
}

struct Loop {
  Traffic traffic;
  void (*cached)(const Arrays&, std::int64_t);
  void (*past)(const Arrays&, std::int64_t);
};

template <int kReads, int kUpdates, int kWrites>
constexpr Loop loop_of() {
  return {{kReads, kUpdates, kWrites}, move<kReads, kUpdates, kWrites, false>, move<kReads, kUpdates, kWrites, true>};
}

constexpr Loop kLoops[]{loop_of<1, 0, 0>(), loop_of<1, 0, 1>(), loop_of<2, 0, 1>(), loop_of<3, 0, 2>(),
                        loop_of<4, 0, 1>(), loop_of<1, 1, 0>(), loop_of<1, 2, 0>(), loop_of<1, 3, 0>()};

const Loop& loop_for(const Traffic& traffic) {
  for (const Loop& loop : kLoops) {
    const Traffic& has = loop.traffic;
    if (has.reads == traffic.reads && has.updates == traffic.updates && has.writes == traffic.writes) return loop;
  }
  throw InternalError(
      str("stream: no loop that reads ", traffic.reads, " arrays, changes ", traffic.updates, " and writes ", traffic.writes));
}

}  // namespace

std::vector<StreamSide> traffic_sides(const Traffic& traffic, double bytes) {
  const Loop& loop = loop_for(traffic);
  const std::int64_t count = static_cast<std::int64_t>(bytes) / static_cast<std::int64_t>(sizeof(float)) / kLanes * kLanes;
  std::vector<Tensor> tensors;
  Arrays arrays{};
  for (int i = 0; i < traffic.reads + traffic.updates + traffic.writes; ++i) {
    tensors.push_back(Tensor::full({count}, 1.0));  // written, so that each array has separate pages
    arrays[static_cast<std::size_t>(i)] = tensors.back().data<float>();
  }
  const double moved = traffic.walks() * static_cast<double>(count) * sizeof(float);
  const auto side = [&](const char* name, auto run) {
    return StreamSide{{name, [arrays, tensors, count, run] { run(arrays, count); }}, moved};
  };
  std::vector<StreamSide> sides{side("same traffic", loop.cached)};
  if (traffic.writes > 0) sides.push_back(side("same traffic past the caches", loop.past));
  return sides;
}

}  // namespace tessera::bench
