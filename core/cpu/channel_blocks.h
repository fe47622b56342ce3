// Vectors along the channels of [rows, channels] data: a kernel is written once for a block of K vectors (channel_walk.h).
#pragma once

#include <cstdint>
#include <cstring>

#include "core/compute_type.h"
#include "core/cpu/bf16_lanes.h"

namespace tessera::cpu {

// W elements side by side in one register; arithmetic operators work element by element.
template <class T, int W>
struct Lanes {
  typedef T type __attribute__((vector_size(sizeof(T) * W)));  // the attribute needs a declarator: no alias
};
template <class T>
struct Lanes<T, 1> {
  using type = T;
};

template <class T, int W>
typename Lanes<T, W>::type load_lanes(const T* from) {
  typename Lanes<T, W>::type lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}
template <class T, int W>
void store_lanes(const typename Lanes<T, W>::type& lanes, T* to) {
  std::memcpy(to, &lanes, sizeof(lanes));
}

// bf16 lanes, converted as by widen() and narrow().
template <class T, int W>
typename Lanes<T, W>::type load_lanes(const bfloat16* from) {
  if constexpr (W == 1) return widen(*from);
  else return load_eight(from);
}
template <class T, int W>
void store_lanes(const typename Lanes<T, W>::type& lanes, bfloat16* to) {
  if constexpr (W == 1) *to = narrow<bfloat16>(lanes);
  else store_eight(lanes, to);
}

// K vectors of W channels each.
template <class T, int W, int K>
struct ChannelBlock {
  using Vec = typename Lanes<T, W>::type;
  static constexpr int kChannels = W * K;
  Vec v[K];

  // One copy per vector: GCC cuts a copy of the whole block into pieces that stall its store buffer. Elements have type
  // T, or one that is computed in T.
  template <class Element>
  static ChannelBlock load(const Element* from) {
    ChannelBlock block;
    for (int k = 0; k < K; ++k) block.v[k] = load_lanes<T, W>(from + k * W);
    return block;
  }
  static ChannelBlock filled(T value) {
    ChannelBlock block;
    for (int k = 0; k < K; ++k) block.v[k] = Vec{} + value;
    return block;
  }
  template <class Element>
  void store(Element* to) const {
    for (int k = 0; k < K; ++k) store_lanes<T, W>(v[k], to + k * W);
  }

  friend ChannelBlock operator+(ChannelBlock a, const ChannelBlock& b) {
    for (int k = 0; k < K; ++k) a.v[k] += b.v[k];
    return a;
  }
  friend ChannelBlock operator-(ChannelBlock a, const ChannelBlock& b) {
    for (int k = 0; k < K; ++k) a.v[k] -= b.v[k];
    return a;
  }
  friend ChannelBlock operator*(ChannelBlock a, const ChannelBlock& b) {
    for (int k = 0; k < K; ++k) a.v[k] *= b.v[k];
    return a;
  }
  // max(a, 0); NaN stays NaN.
  friend ChannelBlock positive_part(ChannelBlock a) {
    for (int k = 0; k < K; ++k) a.v[k] = a.v[k] <= Vec{} ? Vec{} : a.v[k];
    return a;
  }
  // 0 where y <= 0, else g: a NaN in y lets it pass, as ReluBackward does.
  friend ChannelBlock relu_gradient(const ChannelBlock& y, ChannelBlock g) {
    for (int k = 0; k < K; ++k) g.v[k] = y.v[k] <= Vec{} ? Vec{} : g.v[k];
    return g;
  }
};

}  // namespace tessera::cpu
