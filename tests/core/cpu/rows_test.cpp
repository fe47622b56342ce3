// Compares the kernels for rows and long arrays of every instruction set with double, whichever set this processor would choose.
// Both ways of storing results are forced: ops bypass the caches only for results that are too large for tests.
#include "core/cpu/rows/problem.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/cpu/rows/pieces.h"
#include "core/ops/gelu_math.h"
#include "core/ops/rotary_math.h"
#include "core/ops/swiglu_math.h"
#include "core/rng.h"
#include "core/tensor.h"
#include "tests/support/each_isa.h"
#include "tests/support/guarded.h"
#include "tests/support/op_checks.h"
#include "tests/support/relative_error.h"

namespace tessera::cpu::rows {
namespace {

constexpr std::int64_t kSizes[]{1,  7,   16,  33,
                                64, 131, 257, 5000};  // below one vector, whole vectors, remainders, rows too long to hold
constexpr double kTolerance = 4e-6;  // a few roundings of sums that cancel; the op table allows 1e-5

template <class T = float>
Tensor random(std::int64_t n, std::uint64_t index, double low = -6, double high = 6) {
  const Tensor x = Tensor::empty({n});
  fill_uniform(x, RngStream(3, "rows_test", "values"), low, high, index);
  return x.to(dtype_of<T>);
}

std::vector<double> wide(const Tensor& x) { return x.to(DType::f64).to_vector<double>(); }

// Calls check(T()) for each element type that both sets of kernels take.
void for_both(const auto& check) {
  check(float());
  check(bfloat16());
}

class RowKernels : public tessera::testing::EachIsa {
 protected:
  // `run` writes n results, `want` holds the expected ones. Both ways of storing give the same bytes.
  template <class T = float>
  static void expect_results(std::int64_t n, const std::vector<double>& want, const auto& run) {
    constexpr bool kShort = std::is_same_v<T, bfloat16>;
    const Tensor cached = Tensor::full({n + 1}, 42, dtype_of<T>);
    run(Stores::cached, cached.data<T>());
    for (const std::int64_t begin : {0, 3, 8}) {  // aligned to a vector, to nothing, to a short vector
      const Tensor past = Tensor::full({begin + n + 1}, 42, dtype_of<T>);
      run(Stores::past_caches, past.data<T>() + begin);
      EXPECT_EQ(wide(cached), wide(past.slice(0, begin, begin + n + 1))) << n << " from " << begin;
      for (std::int64_t i = 0; i < begin; ++i) EXPECT_EQ(past.slice(0, i, i + 1).item(), 42) << "a write before results, " << n;
    }
    EXPECT_EQ(cached.slice(0, n, n + 1).item(), 42) << "a write behind the results, " << n;
    EXPECT_LE(relative_error(wide(cached.slice(0, 0, n)), want), kTolerance + (kShort ? testing::kBf16Rounding : 0)) << n;
  }

  const Kernels* used = one_of(kAvx2Kernels, kAvx512Kernels);
};

TEST_P(RowKernels, Gelu) {
  for_both([&]<class T>(T) {
    for (const std::int64_t n : kSizes) {
      const Tensor x = random<T>(n, 1), g = random<T>(n, 2);
      const std::vector<double> from = wide(x), grad = wide(g);
      const auto forward = [&](const auto& f) {
        std::vector<double> want;
        for (const double v : from) want.push_back(f(v));
        return want;
      };
      const auto backward = [&](const auto& f) {
        std::vector<double> want;
        for (std::size_t i = 0; i < from.size(); ++i) want.push_back(f(from[i], grad[i]));
        return want;
      };
      const T *const a = x.data<T>(), *const b = g.data<T>();
      const KernelsOf<T>& of = used->of<T>();
      expect_results<T>(n, forward(GeluErfForward()), [&](Stores s, T* y) { of.gelu_erf(a, n, s, y); });
      expect_results<T>(n, forward(GeluTanhForward()), [&](Stores s, T* y) { of.gelu_tanh(a, n, s, y); });
      expect_results<T>(n, backward(GeluErfBackward()), [&](Stores s, T* y) { of.gelu_erf_backward(a, b, n, s, y); });
      expect_results<T>(n, backward(GeluTanhBackward()), [&](Stores s, T* y) { of.gelu_tanh_backward(a, b, n, s, y); });
    }
  });
}

// Every conversion from f32 to bf16 equals narrow(): ties, overflow to Inf, subnormals, NaN.
TEST_P(RowKernels, ResultsOfBf16AreRoundedToTheNearest) {
  std::vector<float> values{0.0F, -0.0F, 1e-45F, 1e-39F, 3.4e38F, -3.4e38F, INFINITY, -INFINITY};
  for (const std::uint32_t low : {0x7fffU, 0x8000U, 0x8001U, 0x17fffU, 0x18000U, 0x18001U}) {
    values.push_back(std::bit_cast<float>(0x3f800000U + low));
  }
  for (const float v : values) {
    // x is 1 and the sine is 0, so y is the rounded cosine.
    const Tensor one = Tensor::zeros({2}, DType::bf16), y = Tensor::zeros({2}, DType::bf16);
    one.fill(1);
    const float zero = 0;
    used->bf16.rotate(one.data<bfloat16>(), &v, &zero, {1, 1, 1}, 1, Stores::cached, y.data<bfloat16>());
    EXPECT_EQ(y.data<bfloat16>()[0].bits(), bfloat16(v).bits()) << v;
  }
  const Tensor nan = Tensor::full({37}, NAN, DType::bf16), y = Tensor::zeros({37}, DType::bf16);
  used->bf16.gelu_erf(nan.data<bfloat16>(), 37, Stores::cached, y.data<bfloat16>());
  for (const double v : wide(y)) EXPECT_TRUE(std::isnan(v));
}

TEST_P(RowKernels, TheTailOfGeluKeepsItsDigits) {
  const Tensor x = random(1000, 1, -12, -4), y = Tensor::empty({1000});
  used->f32.gelu_erf(x.data<float>(), 1000, Stores::cached, y.data<float>());
  for (std::int64_t i = 0; i < 1000; ++i) {
    const double v = x.data<float>()[i], want = v * 0.5 * std::erfc(-v / std::sqrt(2.0));
    EXPECT_NEAR(y.data<float>()[i] / want, 1, 2e-5) << v;  // v^2 / 2 = 72 has a rounding error of 4e-6
  }
}

// Checks every element, including the points where pieces meet and where they end.
TEST_P(RowKernels, GeluIsAccurateInEveryPiece) {
  constexpr std::int64_t kCount = 16 * 1024 + 1;
  std::vector<float> points(kCount);
  for (std::int64_t i = 0; i < kCount; ++i) points[static_cast<std::size_t>(i)] = static_cast<float>(i) / 1024 - 8;
  std::size_t at = 0;
  for (const Pieces* pieces : {&gelu_pieces().erf, &gelu_pieces().tanh}) {
    for (const float end : {std::nextafter(pieces->end, 0.0F), pieces->end, std::nextafter(pieces->end, 9.0F)}) {
      points[at++] = end, points[at++] = -end;
    }
  }
  const Tensor x = Tensor::from(points, {kCount}), one = Tensor::full({kCount}, 1), y = Tensor::empty({kCount});
  const auto expect = [&](const char* name, const auto& exact, bool relative) {
    double worst = 0;
    for (std::int64_t i = 0; i < kCount; ++i) {
      const double want = exact(static_cast<double>(points[static_cast<std::size_t>(i)]));
      const double error = std::abs(y.data<float>()[i] - want);
      worst = std::max(worst, relative && want != 0 ? error / std::abs(want) : error);
    }
    EXPECT_LT(worst, 1e-5) << name;
  };
  const float *const a = x.data<float>(), *const g = one.data<float>();
  used->f32.gelu_erf(a, kCount, Stores::cached, y.data<float>());
  expect(
      "erf", [](double v) { return v * 0.5 * std::erfc(-v / std::sqrt(2.0)); }, true);
  used->f32.gelu_tanh(a, kCount, Stores::cached, y.data<float>());
  expect(
      "tanh", [](double v) { return v / (1 + std::exp(-2 * kSqrtTwoOverPi * v * (1 + kGeluCubic * v * v))); }, true);
  used->f32.gelu_erf_backward(a, g, kCount, Stores::cached, y.data<float>());
  expect(
      "erf, slope", [](double v) { return GeluErfBackward()(v, 1.0); }, false);
  used->f32.gelu_tanh_backward(a, g, kCount, Stores::cached, y.data<float>());
  expect(
      "tanh, slope", [](double v) { return GeluTanhBackward()(v, 1.0); }, false);
}

TEST_P(RowKernels, GeluOfInfinityIsInfinityAndOfNanNan) {
  const Tensor x = Tensor::full({19}, INFINITY), nan = Tensor::full({19}, NAN), y = Tensor::empty({19});
  for (const auto kernel : {used->f32.gelu_erf, used->f32.gelu_tanh}) {
    kernel(x.data<float>(), 19, Stores::cached, y.data<float>());
    for (const double v : wide(y)) EXPECT_EQ(v, INFINITY);
    kernel(nan.data<float>(), 19, Stores::cached, y.data<float>());
    for (const double v : wide(y)) EXPECT_TRUE(std::isnan(v));
  }
}

TEST_P(RowKernels, Swiglu) {
  for_both([&]<class T>(T) {
    for (const std::int64_t n : kSizes) {
      const Tensor x = random<T>(2 * n, 1), g = random<T>(n, 2);
      const std::vector<double> from = wide(x), grads = wide(g);
      std::vector<double> want, gradient, grad_value;
      for (std::size_t i = 0; i < grads.size(); ++i) {
        const double a = from[i], b = from[grads.size() + i];
        const auto grad = swiglu_gradient(a, b, grads[i]);
        want.push_back(swiglu_of(a, b)), gradient.push_back(grad.gate), grad_value.push_back(grad.value);
      }
      gradient.insert(gradient.end(), grad_value.begin(), grad_value.end());
      const KernelsOf<T>& of = used->of<T>();
      expect_results<T>(n, want, [&](Stores s, T* y) { of.swiglu(x.data<T>(), n, s, y); });
      expect_results<T>(2 * n, gradient, [&](Stores s, T* to) { of.swiglu_backward(x.data<T>(), g.data<T>(), n, s, to); });
    }
  });
}

// Heads of two or more vectors, below one vector, and with remainders; some are only copied. Turning back restores x in place.
TEST_P(RowKernels, Rotate) {
  for_both([&]<class T>(T) {
    for (const HeadRow& row : {HeadRow{3, 2, 32}, HeadRow{2, 2, 13}, HeadRow{3, 1, 1}, HeadRow{1, 1, 40}}) {
      const std::int64_t width = 2 * row.half, n = row.heads * width;
      const Tensor x = random<T>(n, 1), cosine = random(row.half, 2, -1, 1), sine = Tensor::empty({row.half});
      for (std::int64_t i = 0; i < row.half; ++i) {
        sine.data<float>()[i] = std::sqrt(1 - cosine.data<float>()[i] * cosine.data<float>()[i]);
      }
      std::vector<double> want = wide(x);
      for (std::int64_t i = 0; i < row.rotated * width; ++i) {
        if (i % width >= row.half) continue;
        const auto first = static_cast<std::size_t>(i), second = static_cast<std::size_t>(i + row.half);
        const double c = cosine.data<float>()[i % width], s = -double{sine.data<float>()[i % width]};
        const RotaryPair<double> pair = rotated(want[first], want[second], c, s);
        want[first] = pair.first, want[second] = pair.second;
      }
      const float *const c = cosine.data<float>(), *const s = sine.data<float>();
      const auto rotate = used->of<T>().rotate;
      expect_results<T>(n, want, [&](Stores stores, T* y) { rotate(x.data<T>(), c, s, row, -1, stores, y); });
      const Tensor y = x.clone();
      rotate(y.data<T>(), c, s, row, 1, Stores::cached, y.data<T>());
      EXPECT_GT(relative_error(y, x), 0.01);
      rotate(y.data<T>(), c, s, row, -1, Stores::cached, y.data<T>());
      EXPECT_LE(relative_error(y, x), kTolerance + (std::is_same_v<T, float> ? 0 : 3 * testing::kBf16Rounding));
    }
  });
}

TEST_P(RowKernels, SoftmaxAndItsGradient) {
  for (const std::int64_t n : kSizes) {
    const Tensor x = random(n, 1, -30, 30), g = random(n, 2), y = Tensor::empty({n});
    double total = 0, dot = 0, top = -INFINITY;
    for (const double v : wide(x)) top = std::max(top, v);
    std::vector<double> want, gradient;
    for (const double v : wide(x)) want.push_back(std::exp(v - top)), total += want.back();
    const ExpSum<float> sum = used->exp_sum(x.data<float>(), n);
    EXPECT_EQ(sum.top, top);
    EXPECT_NEAR(sum.total / total, 1, kTolerance);
    for (double& p : want) p /= total;
    expect_results(n, want, [&](Stores s, float* to) { used->softmax(x.data<float>(), n, s, to); });
    for (const std::int64_t label : {std::int64_t{0}, n / 2, n - 1}) {
      std::vector<double> of_loss;
      for (const double p : want) of_loss.push_back(0.5 * (p - 0.125));
      of_loss[static_cast<std::size_t>(label)] -= 0.5 * 0.75;
      const CrossEntropyRow row{sum, label, 0.125F, 0.75F, 0.5F};
      expect_results(n, of_loss, [&](Stores s, float* to) { used->cross_entropy_backward(x.data<float>(), n, row, s, to); });
    }
    used->softmax(x.data<float>(), n, Stores::cached, y.data<float>());
    for (std::int64_t i = 0; i < n; ++i) dot += double{y.data<float>()[i]} * g.data<float>()[i];
    for (std::int64_t i = 0; i < n; ++i) gradient.push_back(0.5 * y.data<float>()[i] * (g.data<float>()[i] - dot));
    if (n == 1) continue;  // the gradient is 0 except for rounding
    expect_results(n, gradient,
                   [&](Stores s, float* to) { used->softmax_backward(y.data<float>(), g.data<float>(), n, 0.5F, s, to); });
  }
}

TEST_P(RowKernels, WhatIsFarBelowTheLargestIsZero) {
  const Tensor x = Tensor::full({20}, -INFINITY), y = Tensor::empty({20});
  x.data<float>()[3] = 1, x.data<float>()[4] = -100;
  used->softmax(x.data<float>(), 20, Stores::cached, y.data<float>());
  for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(y.data<float>()[i], i == 3 ? 1.0F : 0.0F) << i;
}

// `centred` selects layer norm, otherwise RMS norm.
template <class T>
void expect_norm(const NormKernels<T>& norm, std::int64_t n, bool centred, const auto& expect_results) {
  const Tensor x = random<T>(n, 1), g = random<T>(n, 2), gamma = random(n, 3), beta = random(n, 4);
  const std::vector<double> from = wide(x), grads = wide(g);
  double mean = 0, variance = 0, plain = 0, weighted = 0;
  for (const double v : from) mean += centred ? v / static_cast<double>(n) : 0;
  for (const double v : from) variance += (v - mean) * (v - mean) / static_cast<double>(n);
  const double inv_std = 1 / std::sqrt(variance + 1e-5);
  std::vector<double> want, gradient;
  const auto row_of = [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    return std::pair((from[at] - mean) * inv_std, grads[at] * gamma.data<float>()[i]);
  };
  for (std::int64_t i = 0; i < n; ++i) {
    const auto [h, a] = row_of(i);
    want.push_back(h * gamma.data<float>()[i] + (centred ? beta.data<float>()[i] : 0));
    plain += centred ? a / static_cast<double>(n) : 0, weighted += a * h / static_cast<double>(n);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const auto [h, a] = row_of(i);
    gradient.push_back(inv_std * (a - plain - h * weighted));
  }
  const float *const scale = gamma.data<float>(), *const shift = centred ? beta.data<float>() : nullptr;
  expect_results(n, want, [&](Stores s, T* y) { norm.forward(x.data<T>(), scale, shift, n, 1e-5, s, y); });
  const NormRow row{static_cast<float>(mean), static_cast<float>(inv_std)};
  expect_results(n, gradient, [&](Stores s, T* y) {
    norm.backward(x.data<T>(), g.data<T>(), scale, &row, 1, n, s, y, nullptr, nullptr, nullptr);
  });
}

// Rows in any order; vectors further apart than a row is long. The other rows of a call do not change a dot product.
TEST_P(RowKernels, DotProductsOfRowsWithAFewVectors) {
  for_both([&]<class T>(T) {
    for (const std::int64_t n : kSizes) {
      const std::int64_t pitch = n + 3;
      const Tensor values = random<T>(5 * n, 0, -1, 1), x = random(kMostVectors * pitch, 1, -1, 1);
      const std::vector<double> a = wide(values), b = wide(x);
      const std::vector<std::int64_t> order{3, 0, 4, 1, 2};
      std::vector<const T*> rows;
      for (const std::int64_t row : order) rows.push_back(values.data<T>() + row * n);
      for (int vectors = 1; vectors <= kMostVectors; ++vectors) {
        std::vector<float> dots(5 * vectors + 1, 42.0F), alone(vectors);
        used->of<T>().dots(rows.data(), 5, n, x.data<float>(), pitch, vectors, dots.data());
        EXPECT_EQ(dots.back(), 42.0F) << "behind " << vectors;
        for (std::int64_t r = 0; r < 5; ++r) {
          used->of<T>().dots(rows.data() + r, 1, n, x.data<float>(), pitch, vectors, alone.data());
          for (int v = 0; v < vectors; ++v) {
            double want = 0, size = 0;
            for (std::int64_t i = 0; i < n; ++i) {
              const double term = a[order[r] * n + i] * b[v * pitch + i];
              want += term, size += std::abs(term);
            }
            EXPECT_NEAR(dots[r * vectors + v], want, kTolerance * size) << n << " elements, vector " << v << " of " << vectors;
            EXPECT_EQ(dots[r * vectors + v], alone[v]) << n << " elements, row " << r;
          }
        }
      }
    }
  });
}

TEST_P(RowKernels, LayerNormAndRmsNorm) {
  for_both([&]<class T>(T) {
    const auto expect = [](std::int64_t n, const auto& want, const auto& run) { expect_results<T>(n, want, run); };
    for (const std::int64_t n : kSizes) {
      if (n == 1) continue;  // the variance of one element is 0
      expect_norm<T>(used->of<T>().layer_norm, n, true, expect);
      expect_norm<T>(used->of<T>().rms_norm, n, false, expect);
    }
  });
}

// Sums over rows, alone (eight at a time plus the remainder) or with the gradient of x, whose stores past the caches begin with
// the elements before a whole vector. They are added to what the totals hold.
TEST_P(RowKernels, GradientsOfANormsParameters) {
  for_both([&]<class T>(T) {
    constexpr std::int64_t n = 37, count = 11;
    const Tensor x = random<T>(n * count, 1), g = random<T>(n * count, 2);
    const std::vector<double> from = wide(x), grads = wide(g);
    NormRow rows[count];
    for (int r = 0; r < count; ++r) rows[r] = {0.1F * static_cast<float>(r), 1 + 0.3F * static_cast<float>(r)};
    std::vector<double> want_gamma(n, 2.0), want_beta(n, 3.0), gamma = want_gamma, beta = want_beta;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const NormRow& row = rows[i / n];
      want_gamma[i % n] += grads[i] * (from[i] - double{row.mean}) * row.inv_std;
      want_beta[i % n] += grads[i];
    }
    const KernelsOf<T>& of = used->of<T>();
    const Tensor scale = random(n, 3), scratch = Tensor::full({norm_scratch(n)}, 42);
    for (const bool centred : {true, false}) {
      const NormKernels<T>& norm = centred ? of.layer_norm : of.rms_norm;
      const auto expect_sums = [&](const auto& run) {
        std::fill(gamma.begin(), gamma.end(), 2.0), std::fill(beta.begin(), beta.end(), 3.0);
        run(gamma.data(), centred ? beta.data() : nullptr);
        EXPECT_LE(relative_error(gamma, want_gamma), kTolerance);
        if (!centred) return;
        EXPECT_LE(relative_error(beta, want_beta), kTolerance);
      };
      expect_sums(
          [&](double* gammas, double* betas) { norm.parameters(x.data<T>(), g.data<T>(), rows, count, n, gammas, betas); });
      const auto backward = [&](Stores stores, T* grad_x, double* gammas, double* betas) {
        norm.backward(x.data<T>(), g.data<T>(), scale.data<float>(), rows, count, n, stores, grad_x, scratch.data<float>(),
                      gammas, betas);
      };
      const Tensor alone = Tensor::empty({n * count}, dtype_of<T>);
      backward(Stores::cached, alone.data<T>(), nullptr, nullptr);
      for (const Stores stores : {Stores::cached, Stores::past_caches}) {
        for (const std::int64_t begin : {0, 3, 8}) {
          const Tensor grad_x = Tensor::empty({begin + n * count}, dtype_of<T>);
          expect_sums([&](double* gammas, double* betas) { backward(stores, grad_x.data<T>() + begin, gammas, betas); });
          EXPECT_LE(relative_error(wide(grad_x.slice(0, begin, begin + n * count)), wide(alone)),
                    kTolerance + (std::is_same_v<T, bfloat16> ? testing::kBf16Rounding : 0));
        }
      }
    }
  });
}

// Rows eight at a time plus the remainder; columns that fill vectors or not, and more columns than are summed together.
TEST_P(RowKernels, ColumnSums) {
  for (const auto& [rows, columns] : {std::pair(1, 1), std::pair(19, 7), std::pair(8, 64), std::pair(3152, 33),
                                      std::pair(9, 2500), std::pair(300, 1100), std::pair(0, 5)}) {
    const testing::Guarded x(random(rows * columns, 1)), totals(Tensor::full({columns}, 42));
    const std::vector<double> from = wide(x.tensor());
    std::vector<double> want(columns);
    for (std::size_t i = 0; i < from.size(); ++i) want[i % columns] += from[i];
    column_sums(*used, rows, columns, x.tensor().data<float>(), totals.tensor().data<float>());
    EXPECT_LE(relative_error(wide(totals.tensor()), want), kTolerance) << rows << 'x' << columns;
    EXPECT_TRUE(x.intact() && totals.margins_intact());
    for (const int threads : {1, 3}) {
      const Tensor again = Tensor::empty({columns});
      const int before = omp_get_max_threads();
      omp_set_num_threads(threads);
      column_sums(*used, rows, columns, x.tensor().data<float>(), again.data<float>());
      omp_set_num_threads(before);
      EXPECT_EQ(wide(again), wide(totals.tensor())) << threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, RowKernels, ::testing::Values("avx2", "avx512"), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tessera::cpu::rows
