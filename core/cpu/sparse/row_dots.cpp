#include "core/cpu/sparse/row_dots.h"

#include <algorithm>

#include "core/cpu/parallel.h"

namespace tessera::cpu::sparse {
namespace {

constexpr std::int64_t kSums = 4;  // of each dot product, so that one addition need not wait for the one before
constexpr std::int64_t kElementsOfAThread = 16384;

// One row of A with V vectors.
template <int V>
void dot_row(const std::int32_t* columns, const float* values, std::int64_t count, const float* x, std::int64_t pitch,
             float (&result)[V]) {
  float sums[V][kSums]{};
  std::int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::int64_t k = 0; k < kSums; ++k) {
      for (int v = 0; v < V; ++v) sums[v][k] += values[i + k] * x[v * pitch + columns[i + k]];
    }
  }
  for (; i < count; ++i) {
    for (int v = 0; v < V; ++v) sums[v][0] += values[i] * x[v * pitch + columns[i]];
  }
  for (int v = 0; v < V; ++v) result[v] = (sums[v][0] + sums[v][1]) + (sums[v][2] + sums[v][3]);
}

template <int V>
void multiply_vectors(const SparseIndex& index, const float* values, const float* x, const float* bias, bool relu, float* y) {
  const std::int64_t mean = std::max<std::int64_t>(1, index.count() / std::max<std::int64_t>(1, index.rows));
  parallel_for(index.rows, std::max<std::int64_t>(1, kElementsOfAThread / mean), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t first = index.offsets[r];
      float sums[V];
      dot_row<V>(index.indices.data() + first, values + first, index.offsets[r + 1] - first, x, index.columns, sums);
      for (int v = 0; v < V; ++v) {
        const float sum = sums[v] + (bias != nullptr ? bias[r] : 0.0F);
        y[v * index.rows + r] = relu && sum < 0 ? 0.0F : sum;
      }
    }
  });
}

}  // namespace

void multiply_few(const SparseIndex& index, const float* values, std::int64_t vectors, const float* x, const float* bias,
                  bool relu, float* y) {
  std::int64_t v = 0;
  for (; v + 4 <= vectors; v += 4) {
    multiply_vectors<4>(index, values, x + v * index.columns, bias, relu, y + v * index.rows);
  }
  for (; v + 2 <= vectors; v += 2) {
    multiply_vectors<2>(index, values, x + v * index.columns, bias, relu, y + v * index.rows);
  }
  if (v < vectors) multiply_vectors<1>(index, values, x + v * index.columns, bias, relu, y + v * index.rows);
}

}  // namespace tessera::cpu::sparse
