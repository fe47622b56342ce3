#include "core/cpu/stream_peak.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/cpu/machine_memory.h"

namespace tessera::cpu {
namespace {

constexpr int kRepeats = 5;
constexpr std::size_t kLeastBytes = std::size_t{64} << 20;  // of one array; the system may not know its caches
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr std::size_t kShareOfMemory = 16;

std::size_t array_bytes() {
  const auto cache = static_cast<std::size_t>(std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), 0L));
  const std::size_t bytes = std::clamp(2 * cache, kLeastBytes, kMostBytes);
  const std::size_t memory = machine_memory();
  return memory == 0 ? bytes : std::min(bytes, memory / kShareOfMemory);
}

void scale(const float* x, float* y, std::int64_t count, int threads) {
#pragma omp parallel for simd schedule(static) num_threads(threads)
  for (std::int64_t i = 0; i < count; ++i) y[i] = 3.0f * x[i];
  asm volatile("" : : "r"(y) : "memory");  // nobody reads y: without this the passes might be left out
}

}  // namespace

double stream_peak_gbytes(int threads) {
  const std::size_t bytes = array_bytes();
  const auto count = static_cast<std::int64_t>(bytes / sizeof(float));
  const auto x = std::make_unique_for_overwrite<float[]>(bytes / sizeof(float));
  const auto y = std::make_unique_for_overwrite<float[]>(bytes / sizeof(float));
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t i = 0; i < count; ++i) x[static_cast<std::size_t>(i)] = 1.0f;
  scale(x.get(), y.get(), count, threads);  // the first pass meets pages that are not there yet
  double best = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    scale(x.get(), y.get(), count, threads);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2.0 * static_cast<double>(bytes) / seconds.count() * 1e-9);
  }
  return best;
}

}  // namespace tessera::cpu
