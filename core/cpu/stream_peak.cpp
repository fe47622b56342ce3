#include "core/cpu/stream_peak.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "core/cpu/machine_memory.h"
#include "core/cpu/parallel.h"

namespace tessera::cpu {
namespace {

constexpr int kRepeats = 5;
constexpr std::size_t kLeastBytes = std::size_t{64} << 20;  // of one array, in case the system does not report its caches
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr std::size_t kAlignment = 64;
constexpr std::int64_t kLanes = 8;
constexpr float kFactor = 3.0f;

struct Free {
  void operator()(float* array) const noexcept { std::free(array); }
};
using Array = std::unique_ptr<float[], Free>;

Array make_array(std::size_t bytes) {
  Array array(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
  if (!array) throw std::bad_alloc();
  return array;
}

std::size_t array_bytes() { return bytes_beyond_caches(kLeastBytes, kMostBytes) / kAlignment * kAlignment; }

template <class Store>
void scale(const float* x, float* y, std::int64_t count, int threads, const Store& store) {
  parallel_parts(count / kLanes, threads, [&](std::int64_t begin, std::int64_t end, int) {
    const __m256 factor = _mm256_set1_ps(kFactor);
    for (std::int64_t i = begin * kLanes; i < end * kLanes; i += kLanes)
      store(y + i, _mm256_mul_ps(factor, _mm256_load_ps(x + i)));
    asm volatile("" : : "r"(y) : "memory");  // y may never be read: without this the compiler might drop the passes
  });
}

void scale_with_caches(float* x, float* y, std::int64_t count, int threads) {
  scale(x, y, count, threads, [](float* to, __m256 value) { _mm256_store_ps(to, value); });
}

void scale_past_caches(float* x, float* y, std::int64_t count, int threads) {
  scale(x, y, count, threads, [](float* to, __m256 value) { _mm256_stream_ps(to, value); });
}

void scale_in_place(float* x, float* y, std::int64_t count, int threads) {
  for (float* array : {x, y}) scale_with_caches(array, array, count, threads);
}

constexpr StreamPass kPasses[]{{"scale", scale_with_caches, 2},
                               {"scale past the caches", scale_past_caches, 2},
                               {"scale in place", scale_in_place, 4, true}};

}  // namespace

std::span<const StreamPass> stream_passes() { return kPasses; }

double stream_peak_gbytes(int threads) {
  const std::size_t bytes = array_bytes();
  const auto count = static_cast<std::int64_t>(bytes / sizeof(float));
  const Array x = make_array(bytes);
  const Array y = make_array(bytes);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t i = 0; i < count; ++i) x[static_cast<std::size_t>(i)] = 1.0f;
  kPasses[0].run(x.get(), y.get(), count, threads);  // the first pass, untimed, touches pages that are not mapped yet
  double best = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    for (const StreamPass& pass : kPasses) {
      const auto start = std::chrono::steady_clock::now();
      pass.run(x.get(), y.get(), count, threads);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      best = std::max(best, pass.bytes(count) / seconds.count() * 1e-9);
    }
  }
  return best;
}

}  // namespace tessera::cpu
