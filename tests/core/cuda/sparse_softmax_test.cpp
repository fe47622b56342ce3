#include "core/ops/sparse_softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/autograd/backward.h"
#include "core/rng.h"
#include "tests/support/gpu.h"

namespace tessera::testing {
namespace {

class CudaSparseSoftmax : public GpuTest {};

// Row r keeps the first lengths[r] of the columns.
SparseWeightPtr pattern_of(const std::vector<std::int64_t>& lengths, std::int64_t columns) {
  const auto rows = static_cast<std::int64_t>(lengths.size());
  const Tensor mask = Tensor::zeros({rows, columns}, DType::u8);
  for (std::int64_t i = 0; i < mask.numel(); ++i) {
    mask.data<std::uint8_t>()[i] = i % columns < lengths[static_cast<std::size_t>(i / columns)] ? 1 : 0;
  }
  return std::make_shared<SparseWeight>(mask);
}

// Rows that are kept in registers and rows that are read again; each without, with some and with only elements of -inf.
TEST_F(CudaSparseSoftmax, InfinitiesAndNanAreThoseOfTheCpu) {
  const std::vector<std::int64_t> lengths{5, 0, 5, 5, 256, 256, 256, 700, 700, 700, 1};
  const SparseWeightPtr pattern = pattern_of(lengths, 700);
  const Tensor x = Tensor::empty({2, pattern->count()}, DType::f32), g = Tensor::empty(x.shape(), DType::f32);
  fill_normal(x, RngStream(1, "sparse_softmax", "x"), 0.0, 3.0);
  fill_normal(g, RngStream(1, "sparse_softmax", "g"), 0.0, 1.0);
  const std::vector<std::int64_t>& offsets = pattern->index().offsets;
  for (const std::size_t row : {2, 3, 5, 6, 8, 9}) {
    const bool all = row % 3 == 0;
    for (std::int64_t i = offsets[row]; i < offsets[row + 1]; i += all ? 1 : 3) {
      x.data<float>()[i] = -std::numeric_limits<float>::infinity();
    }
  }
  x.data<float>()[pattern->count() + 2] = std::numeric_limits<float>::quiet_NaN();
  const auto results = [&](Device device) {
    const Var values(x.to(device), true);
    const Var y = sparse_softmax(values, pattern, 0.7);
    backward(y, g.to(device));
    return std::pair{y.value().to_vector<float>(), values.grad().to_vector<float>()};
  };
  const auto [y, grad] = results(gpu());
  const auto [y_cpu, grad_cpu] = results(Device::cpu());
  for (std::size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(std::isnan(y[i]), std::isnan(y_cpu[i])) << i;
    ASSERT_EQ(std::isnan(grad[i]), std::isnan(grad_cpu[i])) << i;
    if (std::isnan(y[i])) continue;
    EXPECT_NEAR(y[i], y_cpu[i], 1e-6f) << i;
    EXPECT_NEAR(grad[i], grad_cpu[i], 1e-5f) << i;
  }
}

}  // namespace
}  // namespace tessera::testing
