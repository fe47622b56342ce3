#include "core/linalg/tucker.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/linalg/mode_product.h"
#include "core/linalg/relative_error.h"
#include "core/support/error.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

using Ranks = std::vector<std::int64_t>;
using Modes = std::vector<int>;

double discarded(const Tensor& tensor, const Modes& modes, const Ranks& ranks) {
  double sum = 0;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const std::vector<double> s = linalg::mode_spectrum(tensor, modes[i]);
    for (std::size_t j = static_cast<std::size_t>(ranks[i]); j < s.size(); ++j) sum += s[j] * s[j];
  }
  return sum;
}

double norm(const Tensor& tensor) {
  double sum = 0;
  for (const double value : values(tensor)) sum += value * value;
  return std::sqrt(sum);
}

struct Case {
  Shape shape;
  Modes modes;
  Ranks ranks;
};
const std::vector<Case> kCases{{{7, 3, 3, 5}, {0, 3}, {3, 2}},  {{5, 4, 6}, {0, 1, 2}, {2, 3, 2}},
                               {{11, 4}, {1}, {3}},             {{13, 2, 2}, {0, 2}, {9, 1}},
                               {{1, 1, 1, 1}, {0, 3}, {1, 1}},  {{17, 1, 1, 3}, {3, 0}, {2, 5}}};

TEST(StHosvd, ErrorStaysBelowTheDiscardedSingularValues) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(str(c.shape));
    const Tensor x = random_tensor(c.shape);
    const double error = linalg::relative_error(linalg::reconstruct(linalg::st_hosvd(x, c.modes, c.ranks)), x) * norm(x);
    EXPECT_LE(error * error, discarded(x, c.modes, c.ranks) * (1 + 1e-9) + 1e-20);
  }
}

TEST(StHosvd, FactorsAreOrthonormalAndTheCoreIsTheProjection) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(str(c.shape));
    const Tensor x = random_tensor(c.shape);
    const linalg::Tucker t = linalg::st_hosvd(x, c.modes, c.ranks);
    Tensor core = x;
    for (std::size_t i = 0; i < c.modes.size(); ++i) {
      ASSERT_EQ(t.factors[i].shape(), (Shape{c.shape[c.modes[i]], c.ranks[i]}));
      EXPECT_LT(orthogonality_defect(t.factors[i]), 1e-12);
      core = linalg::mode_product(core, t.factors[i].permute({1, 0}), c.modes[i]);
    }
    EXPECT_LT(largest_difference(core, t.core), 1e-12);
  }
}

TEST(StHosvd, IsExactAtFullRank) {
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{7, 3, 3, 5}, Shape{13, 1, 1, 2}, Shape{2, 3, 3, 64}}) {
    SCOPED_TRACE(str(shape));
    const Tensor x = random_tensor(shape);
    const Ranks full{shape[0], shape[3]};
    EXPECT_LT(linalg::relative_error(linalg::reconstruct(linalg::st_hosvd(x, Modes{0, 3}, full)), x), 1e-12);
    EXPECT_LT(linalg::relative_error(linalg::reconstruct(linalg::hooi(x, Modes{0, 3}, full)), x), 1e-12);
  }
}

TEST(StHosvd, IsExactAtTheRankOfADeficientTensor) {
  const Tensor core = random_tensor({2, 3, 3, 3});
  const Tensor x = linalg::mode_product(linalg::mode_product(core, random_tensor({9, 2}, DType::f64, 5), 0),
                                        random_tensor({8, 3}, DType::f64, 6), 3);
  EXPECT_LT(linalg::relative_error(linalg::reconstruct(linalg::st_hosvd(x, Modes{0, 3}, Ranks{2, 3})), x), 1e-12);
  EXPECT_LT(linalg::relative_error(linalg::reconstruct(linalg::hooi(x, Modes{0, 3}, Ranks{5, 4})), x), 1e-12);
  EXPECT_LT(linalg::mode_spectrum(x, 0)[2], 1e-6);
}

TEST(StHosvd, TakesAZeroTensor) {
  const Tensor zero = Tensor::zeros({4, 3, 5}, DType::f64);
  EXPECT_EQ(linalg::relative_error(linalg::reconstruct(linalg::hooi(zero, Modes{0, 2}, Ranks{2, 2})), zero), 0.0);
}

TEST(StHosvd, ErrorFallsWithRank) {
  const Tensor x = random_tensor({8, 3, 3, 8});
  double last = std::numeric_limits<double>::infinity();
  for (std::int64_t rank = 1; rank <= 8; ++rank) {
    const double error = linalg::relative_error(linalg::reconstruct(linalg::st_hosvd(x, Modes{0, 3}, Ranks{rank, rank})), x);
    EXPECT_LT(error, last);
    last = error;
  }
}

TEST(Hooi, IsNotWorseThanItsStartAndImprovesARandomTensor) {
  const linalg::HooiOptions options{.max_iterations = 50, .tolerance = 0};
  for (const Case& c : kCases) {
    SCOPED_TRACE(str(c.shape));
    const Tensor x = random_tensor(c.shape);
    const double start = linalg::relative_error(linalg::reconstruct(linalg::st_hosvd(x, c.modes, c.ranks)), x);
    const double end = linalg::relative_error(linalg::reconstruct(linalg::hooi(x, c.modes, c.ranks, options)), x);
    EXPECT_LE(end, start + 1e-12);
  }
  const Tensor x = random_tensor({9, 3, 3, 7});
  const double start = linalg::relative_error(linalg::reconstruct(linalg::st_hosvd(x, Modes{0, 3}, Ranks{2, 2})), x);
  EXPECT_LT(linalg::relative_error(linalg::reconstruct(linalg::hooi(x, Modes{0, 3}, Ranks{2, 2}, options)), x), start - 1e-4);
}

TEST(Hooi, ZeroIterationsGiveTheStart) {
  const Tensor x = random_tensor({5, 3, 4}, DType::f32);
  const linalg::Tucker start = linalg::st_hosvd(x, Modes{0, 2}, Ranks{2, 3});
  const linalg::Tucker same = linalg::hooi(x, Modes{0, 2}, Ranks{2, 3}, {.max_iterations = 0});
  EXPECT_EQ(values(same.core), values(start.core));
  EXPECT_EQ(same.core.dtype(), DType::f32);
}

TEST(ModeSpectrum, HoldsTheNormAndPadsTallUnfoldings) {
  const Tensor x = random_tensor({7, 2, 3});
  for (const int mode : {0, 1, 2}) {
    const std::vector<double> s = linalg::mode_spectrum(x, mode);
    ASSERT_EQ(s.size(), static_cast<std::size_t>(x.dim(mode)));
    double energy = 0;
    for (const double value : s) energy += value * value;
    EXPECT_NEAR(std::sqrt(energy), norm(x), 1e-10);
    EXPECT_TRUE(std::is_sorted(s.rbegin(), s.rend()));
  }
  EXPECT_EQ(linalg::mode_spectrum(x, 0).back(), 0.0);
}

TEST(Tucker, MessagesNameModeSizeAndLegalRange) {
  const Tensor x = Tensor::zeros({7, 3, 3, 5});
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::st_hosvd(x, Modes{0, 3}, Ranks{7, 6}); }),
            "st_hosvd: rank 6 for mode 3 of size 5; legal range is 1..5");
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::hooi(x, Modes{0}, Ranks{0}); }),
            "hooi: rank 0 for mode 0 of size 7; legal range is 1..7");
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::hooi(x, Modes{3, -1}, Ranks{1, 1}); }),
            "hooi: mode 3 is given twice; modes must differ");
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::hooi(x, Modes{3}, Ranks{1, 1}); }),
            "hooi: 1 modes and 2 ranks; needs one rank for each mode");
  EXPECT_EQ(message_of<ShapeError>([] { linalg::st_hosvd(Tensor::zeros({0, 3}), Modes{1}, Ranks{1}); }),
            "st_hosvd: tensor is [0, 3]; must not be empty");
}

TEST(RelativeError, HandlesZerosAndShapes) {
  const Tensor zero = Tensor::zeros({2, 2});
  const Tensor one = Tensor::full({2, 2}, 1.0);
  EXPECT_EQ(linalg::relative_error(zero, zero), 0.0);
  EXPECT_EQ(linalg::relative_error(zero, one), 1.0);
  EXPECT_EQ(linalg::relative_error(one, zero), std::numeric_limits<double>::infinity());
  EXPECT_NE(message_of<ShapeError>([&] { linalg::relative_error(one, Tensor::zeros({4})); }), "");
}

}  // namespace
}  // namespace tessera::testing
