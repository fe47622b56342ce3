// Vectors of W floats. Included only by files that are built for one instruction set each.
#pragma once

#include <cstdint>
#include <cstring>

namespace tessera::cpu::sparse {
namespace {

template <int W>
struct Vector {
  typedef float type __attribute__((vector_size(4 * W)));  // the attribute needs a declarator: no alias
  typedef std::int32_t lanes __attribute__((vector_size(4 * W)));
};
template <int W>
using Vec = typename Vector<W>::type;

template <int W>
[[gnu::always_inline]] inline Vec<W> load(const float* from) {
  Vec<W> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <int W>
[[gnu::always_inline]] inline void store(const Vec<W>& v, float* to) {
  std::memcpy(to, &v, sizeof v);
}

}  // namespace
}  // namespace tessera::cpu::sparse
