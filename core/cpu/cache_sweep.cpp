#include "core/cpu/cache_sweep.h"

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <new>

#include "core/cpu/machine_memory.h"

namespace tessera::cpu {
namespace {

constexpr std::size_t kLeastBytes = std::size_t{16} << 20;  // in case the system does not report its caches
constexpr std::size_t kMostBytes = std::size_t{256} << 20;
constexpr std::size_t kLineBytes = 64;

thread_local std::size_t flushes = 0;

}  // namespace

void CacheSweep::operator()() {
  if (!wanted_) return;
  if (other_ == nullptr) {
    count_ = bytes_beyond_caches(kLeastBytes, kMostBytes) / sizeof(float);
    other_.reset(new (std::nothrow) float[count_]);
    if (other_ == nullptr) {
      wanted_ = false;
      return;
    }
    std::fill_n(other_.get(), count_, 1.0F);  // pages that were never written may all be one physical page
  }
#pragma omp parallel
  {
    float sum = 0;
    for (std::size_t i = 0; i < count_; i += kLineBytes / sizeof(float)) sum += other_[i];
    asm volatile("" : : "x"(sum));  // makes the compiler treat the sum as used
  }
}

void flush_caches_of(std::initializer_list<const Tensor*> tensors) {
  std::size_t all = 0;
  for (const Tensor* const x : tensors) all += x->bytes();
  if (all < kLeastFlushedBytes) return;
  for (const Tensor* const x : tensors) {
    const char* const begin = static_cast<const char*>(x->raw());
    const char* const end = begin + x->bytes();
    for (const char* at = begin; at < end; at += kLineBytes - reinterpret_cast<std::uintptr_t>(at) % kLineBytes) _mm_clflush(at);
  }
  _mm_mfence();
  ++flushes;
}

std::size_t cache_flushes() { return flushes; }

}  // namespace tessera::cpu
