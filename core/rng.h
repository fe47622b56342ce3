// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11, "Parallel random numbers: as easy as 1, 2, 3").
// A number is a pure function of (seed, stream, step, element): there is no generator state to save, threads and devices
// draw the same, and a change elsewhere in a model moves nobody's numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/support/host_device.h"
#include "core/tensor.h"

namespace tessera {

// Philox4x32-10 of a 128-bit counter under a 64-bit key.
TESSERA_HD inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::uint64_t key) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

// Names one sequence of numbers, e.g. {seed, "layer1.0.dropout", "mask"} or {seed, "data", "order"}.
struct RngStream {
  std::uint64_t key = 0;

  RngStream() = default;
  RngStream(std::uint64_t seed, std::string_view path, std::string_view purpose);
};

// Four 32-bit words for (stream, step, block): block = element / 4.
TESSERA_HD inline std::array<std::uint32_t, 4> random_words(RngStream stream, std::uint64_t step, std::uint64_t block) {
  return philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), static_cast<std::uint32_t>(step),
                 static_cast<std::uint32_t>(step >> 32)},
                stream.key);
}

// [0, 1) with 24 bits.
TESSERA_HD inline float to_unit_float(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
// An integer of [0, bound), bound in 1..2^31; bias below 2^-32 * bound.
TESSERA_HD inline std::int64_t below(std::uint32_t word, std::int64_t bound) {
  return static_cast<std::int64_t>((std::uint64_t{word} * static_cast<std::uint64_t>(bound)) >> 32);
}

// Single draws on the host: element `index` of the stream at `step`; random_below: an integer of [0, bound), by below(), and
// InternalError where bound < 1.
std::uint32_t random_u32(RngStream stream, std::uint64_t step, std::uint64_t index);
float random_uniform(RngStream stream, std::uint64_t step, std::uint64_t index);
std::int64_t random_below(RngStream stream, std::uint64_t step, std::uint64_t index, std::int64_t bound);

// Fills a contiguous f32 or f64 tensor, element i from word i % 4 of block i / 4. A GPU's normal numbers may differ from the
// CPU's in the last bits of their f64: the libraries' log, sin and cos do.
void fill_uniform(const Tensor& target, RngStream stream, double low, double high, std::uint64_t step = 0);
void fill_normal(const Tensor& target, RngStream stream, double mean, double stddev, std::uint64_t step = 0);

// The permutation of 0..count-1 for (stream, step): Fisher-Yates over random_below.
std::vector<std::int64_t> random_permutation(RngStream stream, std::uint64_t step, std::int64_t count);

}  // namespace tessera
