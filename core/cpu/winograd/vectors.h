// Vectors of W channels, and walks over channels and along both axes of a tile.
// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tessera::cpu::winograd {
namespace {

template <int W>
struct Vector {
  typedef float type __attribute__((vector_size(4 * W)));  // the attribute needs a declarator: no alias
};
template <int W>
using Vec = typename Vector<W>::type;

template <int W>
constexpr std::int64_t padded(std::int64_t channels) {
  return (channels + W - 1) / W * W;
}

template <int W>
Vec<W> load(const float* from, std::int64_t lanes) {
  Vec<W> v{};
  if (lanes >= W) {
    std::memcpy(&v, from, sizeof v);
  } else {
    for (std::int64_t i = 0; i < lanes; ++i) v[i] = from[i];
  }
  return v;
}

template <int W>
void store(const Vec<W>& v, float* to, std::int64_t lanes) {
  if (lanes >= W) {
    std::memcpy(to, &v, sizeof v);
  } else {
    for (std::int64_t i = 0; i < lanes; ++i) to[i] = v[i];
  }
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
