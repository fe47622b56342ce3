#include "compress/ranks/evbmf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/linalg/svd.h"

namespace tessera {
namespace {

// A number in [-0.5, 0.5), computed as in tests/oracle/evbmf_ranks.py.
double uniform(std::int64_t i, std::int64_t j, int seed) {
  const double x = std::sin(12.9898 * static_cast<double>(i) + 78.233 * static_cast<double>(j) + 37.719 * seed) * 43758.5453;
  return x - std::floor(x) - 0.5;
}

struct Case {
  std::int64_t rows, columns, rank;
  double signal, noise;
  std::int64_t found;
};

std::vector<double> spectrum(const Case& c) {
  const Tensor y = Tensor::zeros({c.rows, c.columns}, DType::f64);
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j) {
      double& element = y.data<double>()[i * c.columns + j];
      element = c.noise * uniform(i, j, 1);
      for (std::int64_t k = 0; k < c.rank; ++k) {
        element += c.signal / static_cast<double>(1 + k) * uniform(i, k, 2) * uniform(j, k, 3);
      }
    }
  }
  return linalg::svd(y).s.to_vector<double>();
}

// `found`: the rank by EVBMF of musco-pytorch 1.0.6 (PyPI) for these matrices, printed by tests/oracle/evbmf_ranks.py.
TEST(Evbmf, FindsTheRanksOfAPublishedImplementation) {
  const Case cases[]{{40, 60, 0, 0.0, 1.0, 0},  {40, 60, 5, 8.0, 1.0, 5},   {90, 30, 7, 6.0, 0.5, 7},
                     {32, 32, 3, 2.0, 1.0, 1},  {64, 576, 20, 4.0, 1.0, 8}, {10, 400, 10, 50.0, 0.01, 9},
                     {100, 12, 4, 5.0, 0.2, 4}, {256, 256, 40, 3.0, 1.0, 7}};
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::Message() << c.rows << " x " << c.columns << ", signal of rank " << c.rank);
    const std::vector<double> values = spectrum(c);
    EXPECT_EQ(evbmf_rank(values, c.rows, c.columns), c.found);
    EXPECT_EQ(evbmf_rank(values, c.columns, c.rows), c.found);
    std::vector<double> larger = values;
    for (double& value : larger) value *= 1e6;
    EXPECT_EQ(evbmf_rank(larger, c.rows, c.columns), c.found) << "scale must not matter";
  }
}

TEST(Evbmf, OfNothingIsNothing) {
  EXPECT_EQ(evbmf_rank({}, 3, 4), 0);
  EXPECT_EQ(evbmf_rank(std::vector<double>{0, 0, 0}, 3, 4), 0);
}

TEST(Evbmf, ZerosAndExtremeShapesHaveARank) {
  EXPECT_EQ(evbmf_rank(std::vector<double>{5, 0, 0, 0}, 4, 100), 1);
  EXPECT_EQ(evbmf_rank(std::vector<double>{5, 1, 0, 0}, 4, 100), 2);
  EXPECT_EQ(evbmf_rank(std::vector<double>{5, 1, 1e-6, 1e-6}, 4, 100), 2);
  for (const auto& [rows, columns] : {std::pair{1, 1}, {1, 1000}, {1000, 1}, {2, 3}}) {
    const std::int64_t found = evbmf_rank(std::vector<double>{1.0}, rows, columns);
    EXPECT_GE(found, 0);
    EXPECT_LE(found, 1);
  }
}

}  // namespace
}  // namespace tessera
