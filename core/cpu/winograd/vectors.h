// Vectors of W channels, and walks over channels and along both axes of a tile.
// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/cpu/vectors.h"

namespace tessera::cpu::winograd {
namespace {

template <int W>
constexpr std::int64_t padded(std::int64_t channels) {
  return (channels + W - 1) / W * W;
}

// T is f32 or bf16. load() sets the lanes from `lanes` on to 0, store() does not write them. Rests are copied, not converted: a
// conversion of core/half.h used here would be built for these instructions and could be linked in elsewhere.
template <int W, class T>
[[gnu::always_inline]] inline Vec<W> load(const T* from, std::int64_t lanes) {
  if (lanes >= W) return cpu::load<W>(from);
  T rest[W]{};
  for (std::int64_t i = 0; i < lanes; ++i) rest[i] = from[i];
  return cpu::load<W>(rest);
}

template <int W, class T>
[[gnu::always_inline]] inline void store(const Vec<W>& v, T* to, std::int64_t lanes) {
  if (lanes >= W) return cpu::store<W>(v, to);
  T rest[W];
  cpu::store<W>(v, rest);
  for (std::int64_t i = 0; i < lanes; ++i) to[i] = rest[i];
}

// Calls step(first channel, lanes); lanes is a constant but for the channels that fill no vector.
template <int W, class Step>
[[gnu::always_inline]] inline void for_each_vector(std::int64_t channels, Step&& step) {
  std::int64_t c = 0;
  for (; c + W <= channels; c += W) step(c, std::integral_constant<std::int64_t, W>());
  if (c < channels) step(c, channels - c);
}

// From x From elements read(i, j) become To x To elements write(i, j, value): `one` along both axes. The loops stay loops:
// unrolled they need more addresses than there are registers.
template <int From, int To, class V, class Read, class One, class Write>
[[gnu::always_inline]] inline void along_both(Read&& read, One&& one, Write&& write) {
  V half[To][From];
#pragma GCC unroll 1
  for (int j = 0; j < From; ++j) {
    V in[From];
    V out[To];
#pragma GCC unroll 6
    for (int i = 0; i < From; ++i) in[i] = read(i, j);
    one(in, out);
#pragma GCC unroll 6
    for (int i = 0; i < To; ++i) half[i][j] = out[i];
  }
#pragma GCC unroll 1
  for (int i = 0; i < To; ++i) {
    V out[To];
    one(half[i], out);
#pragma GCC unroll 6
    for (int j = 0; j < To; ++j) write(i, j, out[j]);
  }
}

}  // namespace
}  // namespace tessera::cpu::winograd
