// What ranks bring to a sum, and what it comes to.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/rng.h"
#include "core/tensor.h"
#include "tests/core/comm/ranks.h"

namespace tessera {

// Every rank can tell the others' too.
template <class T>
std::vector<T> values_of(int rank, std::int64_t count) {
  const Tensor drawn = Tensor::empty({count});
  fill_normal(drawn, RngStream(static_cast<std::uint64_t>(rank), "test", "comm"), 0, 1);
  std::vector<T> values;
  for (const float value : drawn.to_vector<float>()) {
    values.push_back(static_cast<T>(value) * static_cast<T>(std::pow(10.0, values.size() % 7)));  // sums depend on their order
  }
  return values;
}

template <class T>
std::vector<T> sums_in_rank_order(std::int64_t count) {
  std::vector<T> sums = values_of<T>(0, count);
  for (int r = 1; r < ranks().size(); ++r) {
    const std::vector<T> more = values_of<T>(r, count);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
  }
  return sums;
}

}  // namespace tessera
