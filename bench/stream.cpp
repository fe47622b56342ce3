#include "bench/stream.h"

#include <immintrin.h>

#include "core/cpu/parallel.h"

namespace tessera::bench {
namespace {

constexpr std::int64_t kLanes = 8;
constexpr float kFactor = 0.5f;

std::int64_t elements_of(std::int64_t megabytes) { return (megabytes << 20) / static_cast<std::int64_t>(sizeof(float)); }

void scale(const float* x, float* y, std::int64_t begin, std::int64_t end) {
  const __m256 factor = _mm256_set1_ps(kFactor);
  for (std::int64_t i = begin; i < end; i += kLanes) _mm256_store_ps(y + i, _mm256_mul_ps(factor, _mm256_load_ps(x + i)));
}

void scale_past_caches(const float* x, float* y, std::int64_t begin, std::int64_t end) {
  const __m256 factor = _mm256_set1_ps(kFactor);
  for (std::int64_t i = begin; i < end; i += kLanes) _mm256_stream_ps(y + i, _mm256_mul_ps(factor, _mm256_load_ps(x + i)));
  _mm_sfence();
}

using Kernel = void (*)(const float*, float*, std::int64_t, std::int64_t);

Contestant contestant(std::string name, const Tensor& x, const Tensor& y, Kernel kernel) {
  const auto run = [x, y, kernel] {
    cpu::parallel_for(x.numel() / kLanes, cpu::kGrain, [&](std::int64_t begin, std::int64_t end) {
      kernel(x.data<float>(), y.data<float>(), begin * kLanes, end * kLanes);
    });
  };
  return {std::move(name), run};
}

}  // namespace

std::vector<Contestant> stream_contestants(std::int64_t megabytes) {
  const Tensor x = Tensor::zeros({elements_of(megabytes)});
  const Tensor y = Tensor::zeros({elements_of(megabytes)});
  return {contestant("scale", x, y, scale), contestant("scale past the caches", x, y, scale_past_caches)};
}

double stream_bytes(std::int64_t megabytes) { return 2.0 * static_cast<double>(elements_of(megabytes)) * sizeof(float); }

}  // namespace tessera::bench
