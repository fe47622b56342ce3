#include "tests/support/attention_reference.h"

#include <cmath>
#include <vector>

#include "tests/support/reference.h"

namespace tessera::testing {

Tensor attention_reference(std::span<const Tensor> in, const Sees& sees) {
  const Tensor &q = in[0], &k = in[1], &v = in[2];
  const std::int64_t queries = q.dim(1), heads = q.dim(2), width = q.dim(3), keys = k.dim(1), group = heads / k.dim(2);
  const Tensor y = Tensor::zeros(q.shape(), DType::f64);
  for_each_index({q.dim(0), heads, queries}, [&](const Index& index) {
    const std::int64_t b = index[0], h = index[1], i = index[2];
    std::vector<double> powers(static_cast<std::size_t>(keys), 0.0);
    double total = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      if (!sees(h, i + keys - queries, j) || (in.size() > 3 && element(in[3], {b, j}) == 0)) continue;
      double score = 0;
      for (std::int64_t c = 0; c < width; ++c) score += at(q, b, i, h, c) * at(k, b, j, h / group, c);
      total += powers[static_cast<std::size_t>(j)] = std::exp(score / std::sqrt(static_cast<double>(width)));
    }
    for (std::int64_t j = 0; total > 0 && j < keys; ++j) {
      for (std::int64_t c = 0; c < width; ++c) {
        at(y, b, i, h, c) += powers[static_cast<std::size_t>(j)] / total * at(v, b, j, h / group, c);
      }
    }
  });
  return y;
}

}  // namespace tessera::testing
