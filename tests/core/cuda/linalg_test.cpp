// Decompositions on a GPU: what they say of themselves, and that they are the CPU's.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/linalg/decompositions_cuda.h"
#include "core/linalg/eigh.h"
#include "core/linalg/qr.h"
#include "core/linalg/svd.h"
#include "core/linalg/tucker.h"
#include "core/rng.h"
#include "tests/support/gpu.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

Tensor random(const Shape& shape, DType dtype, std::uint64_t seed) {
  const Tensor x = Tensor::empty(shape, dtype);
  fill_normal(x, RngStream(seed, "linalg", "values"), 0.0, 1.0);
  return x;
}

double tolerance(DType dtype) { return dtype == DType::f64 ? 1e-9 : 2e-4; }

// The matrix vectors diag(values) vectors'.
std::vector<double> composed(const linalg::Eigh& e, std::int64_t n) {
  const std::vector<double> values = e.values.to(DType::f64).to_vector<double>();
  const std::vector<double> vectors = e.vectors.to(DType::f64).to_vector<double>();
  std::vector<double> a;
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      double sum = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        sum += vectors[static_cast<std::size_t>(row * n + i)] * values[static_cast<std::size_t>(i)] *
               vectors[static_cast<std::size_t>(column * n + i)];
      }
      a.push_back(sum);
    }
  }
  return a;
}

// The symmetric matrix that has this lower triangle.
std::vector<double> symmetric(const Tensor& lower, std::int64_t n) {
  const std::vector<double> values = lower.to(DType::f64).to_vector<double>();
  std::vector<double> a;
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      a.push_back(values[static_cast<std::size_t>(std::max(row, column) * n + std::min(row, column))]);
    }
  }
  return a;
}

class CudaLinalg : public GpuTestWithParam<DType> {};

TEST_P(CudaLinalg, SvdIsTheCpus) {
  for (const Shape& shape : {Shape{1, 1}, Shape{7, 3}, Shape{3, 7}, Shape{64, 64}, Shape{33, 150}}) {
    SCOPED_TRACE(str(shape));
    const Tensor a = random(shape, GetParam(), 1);
    const linalg::Svd expected = linalg::svd(a);
    const linalg::Svd got = linalg::svd(a.to(gpu()));
    EXPECT_EQ(got.u.device(), gpu());
    EXPECT_LE(relative_error(got.s, expected.s), tolerance(GetParam()));
    EXPECT_LE(relative_error(got.u, expected.u), tolerance(GetParam()));
    EXPECT_LE(relative_error(got.v, expected.v), tolerance(GetParam()));
  }
}

TEST_P(CudaLinalg, QrIsTheCpus) {
  for (const Shape& shape : {Shape{1, 1}, Shape{9, 4}, Shape{4, 9}, Shape{65, 65}}) {
    SCOPED_TRACE(str(shape));
    const Tensor a = random(shape, GetParam(), 2);
    const linalg::Qr expected = linalg::qr(a);
    const linalg::Qr got = linalg::qr(a.to(gpu()));
    EXPECT_LE(relative_error(got.q, expected.q), tolerance(GetParam()));
    EXPECT_LE(relative_error(got.r, expected.r), tolerance(GetParam()));
  }
}

TEST_P(CudaLinalg, EighIsTheCpus) {
  for (const std::int64_t n : {1, 5, 33, 96}) {
    SCOPED_TRACE(n);
    const Tensor a = random({n, n}, GetParam(), 3);  // only its lower triangle is read
    const linalg::Eigh expected = linalg::eigh(a);
    const linalg::Eigh got = linalg::eigh(a.to(gpu()));
    EXPECT_LE(relative_error(got.values, expected.values), tolerance(GetParam()));
    EXPECT_LE(relative_error(composed(got, n), symmetric(a, n)), tolerance(GetParam()));
    EXPECT_LE(relative_error(linalg::eigvalsh(a.to(gpu())), expected.values), tolerance(GetParam()));
  }
}

TEST_P(CudaLinalg, HooiIsTheCpus) {
  const Tensor weight = random({24, 3, 3, 17}, GetParam(), 4);
  const std::vector<int> modes{0, 3};
  const std::vector<std::int64_t> ranks{9, 5};
  const linalg::Tucker expected = linalg::hooi(weight, modes, ranks, {});
  const linalg::Tucker got = linalg::hooi(weight.to(gpu()), modes, ranks, {});
  EXPECT_LE(relative_error(linalg::reconstruct(got), linalg::reconstruct(expected)), tolerance(GetParam()));
}

// Matrix i of a batch.
Tensor one_of(const Tensor& batch, std::int64_t i) {
  return batch.to(Device::cpu()).slice(0, i, i + 1).contiguous().reshape(batch.shape().erase(0));
}

TEST_P(CudaLinalg, BatchesAreTheirMatrices) {
  const Tensor tall = random({5, 27, 12}, GetParam(), 5);
  const linalg::Svd svds = cuda::svd_batch(tall.to(gpu()));
  const Tensor square = random({5, 30, 30}, GetParam(), 6);
  const linalg::Eigh eighs = cuda::eigh_batch(square.to(gpu()));
  for (std::int64_t i = 0; i < 5; ++i) {
    SCOPED_TRACE(i);
    const linalg::Svd svd = linalg::svd(one_of(tall, i));
    EXPECT_LE(relative_error(one_of(svds.s, i), svd.s), tolerance(GetParam()));
    EXPECT_LE(relative_error(one_of(svds.u, i), svd.u), tolerance(GetParam()));
    EXPECT_LE(relative_error(one_of(svds.v, i), svd.v), tolerance(GetParam()));
    const linalg::Eigh eigh = linalg::eigh(one_of(square, i));
    EXPECT_LE(relative_error(one_of(eighs.values, i), eigh.values), tolerance(GetParam()));
    EXPECT_LE(relative_error(one_of(eighs.vectors, i), eigh.vectors), tolerance(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaLinalg, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& test) { return str(test.param); });

}  // namespace
}  // namespace tessera::testing
