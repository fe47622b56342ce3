#include "core/cpu/fma_peak.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tessera::cpu {
namespace {

// A latency of 4 cycles at two FMAs per cycle needs 8 chains; 12 leave slack and fit the 16 registers of AVX2.
constexpr int kChains = 12;
constexpr std::int64_t kIterations = 2'000'000;
constexpr int kRepeats = 25;  // half a second: threads may all begin on one processor

// The first barrier hides that all chains start alike: the compiler would otherwise compute one and count it twelve times. The
// second keeps them alive without storing them.
[[gnu::target("avx2,fma")]] void run_avx2() {
  __m256 chain[kChains];
  const __m256 factor = _mm256_set1_ps(0.5f);
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) {
    chain[i] = factor;
    asm volatile("" : "+x"(chain[i]));
  }
  for (std::int64_t step = 0; step < kIterations; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) chain[i] = _mm256_fmadd_ps(chain[i], factor, factor);
  }
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) asm volatile("" : : "x"(chain[i]));
}

[[gnu::target("avx512f")]] void run_avx512() {
  __m512 chain[kChains];
  const __m512 factor = _mm512_set1_ps(0.5f);
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) {
    chain[i] = factor;
    asm volatile("" : "+v"(chain[i]));
  }
  for (std::int64_t step = 0; step < kIterations; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) chain[i] = _mm512_fmadd_ps(chain[i], factor, factor);
  }
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) asm volatile("" : : "v"(chain[i]));
}

double gflops(void (*run)(), int lanes, int threads) {
  double best = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
#pragma omp parallel num_threads(threads)
    run();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const double flops = 2.0 * lanes * kChains * static_cast<double>(kIterations) * threads;
    best = std::max(best, flops / seconds.count() * 1e-9);
  }
  return best;
}

}  // namespace

double fma_peak_gflops(int threads) {
  const double narrow = gflops(run_avx2, 8, threads);
  return __builtin_cpu_supports("avx512f") ? std::max(narrow, gflops(run_avx512, 16, threads)) : narrow;
}

double isa_peak_gflops(Isa isa, int threads) {
  return isa == Isa::avx2 ? gflops(run_avx2, 8, threads) : fma_peak_gflops(threads);
}

}  // namespace tessera::cpu
