#include "core/linalg/unfold.h"

#include <gtest/gtest.h>

#include "core/linalg/mode_product.h"
#include "core/support/error.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// Entry (i, j) of the mode-m unfolding of a [p, q, r] tensor, written out.
std::vector<double> naive_unfold(const Tensor& tensor, int mode) {
  const std::vector<double> x = values(tensor);
  const std::int64_t p = tensor.dim(0), q = tensor.dim(1), r = tensor.dim(2);
  std::vector<double> rows(x.size());
  for (std::int64_t i = 0; i < p; ++i) {
    for (std::int64_t j = 0; j < q; ++j) {
      for (std::int64_t k = 0; k < r; ++k) {
        const std::int64_t target = mode == 0 ? i * q * r + j * r + k : mode == 1 ? j * p * r + i * r + k : k * p * q + i * q + j;
        rows[at(target)] = x[at((i * q + j) * r + k)];
      }
    }
  }
  return rows;
}

TEST(Unfold, MatchesLoops) {
  const Tensor x = random_tensor({3, 5, 2});
  for (const int mode : {0, 1, 2}) {
    const Tensor unfolded = linalg::unfold(x, mode);
    EXPECT_EQ(unfolded.shape(), (Shape{x.dim(mode), 30 / x.dim(mode)}));
    EXPECT_EQ(values(unfolded), naive_unfold(x, mode));
  }
  EXPECT_EQ(values(linalg::unfold(x, -1)), naive_unfold(x, 2));
}

TEST(Unfold, FoldIsItsInverse) {
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{1, 1}, Shape{3, 1, 4}, Shape{2, 3, 5, 7}, Shape{0, 3}}) {
    const Tensor x = random_tensor(shape, DType::f32);
    for (int mode = 0; mode < shape.rank(); ++mode) {
      SCOPED_TRACE(str(shape, " mode ", mode));
      const Tensor back = linalg::fold(linalg::unfold(x, mode), mode, shape);
      EXPECT_EQ(back.shape(), shape);
      EXPECT_EQ(values(back), values(x));
    }
  }
}

TEST(Unfold, NamesWhatDoesNotFit) {
  EXPECT_EQ(message_of<ShapeError>([] { linalg::fold(Tensor::zeros({3, 4}), 1, Shape{3, 5}); }),
            "fold: matrix is [3, 4]; mode 1 of [3, 5] unfolds to [5, 3]");
  EXPECT_NE(message_of<ShapeError>([] { linalg::unfold(Tensor::zeros({3, 4}), 2); }), "");
}

TEST(ModeProduct, MatchesTheUnfoldedProduct) {
  const Tensor x = random_tensor({3, 5, 2});
  for (const int mode : {0, 1, 2}) {
    const Tensor matrix = random_tensor({4, x.dim(mode)}, DType::f64, 3);
    const Tensor y = linalg::mode_product(x, matrix, mode);
    EXPECT_EQ(y.dim(mode), 4);
    const Tensor expected = naive_matmul(matrix, Tensor::from(naive_unfold(x, mode), {x.dim(mode), 30 / x.dim(mode)}));
    EXPECT_LT(largest_difference(Tensor::from(naive_unfold(y, mode), expected.shape()), expected), 1e-12);
  }
}

TEST(ModeProduct, ProductsInDifferentModesCommute) {
  const Tensor x = random_tensor({3, 5, 2});
  const Tensor a = random_tensor({4, 3}, DType::f64, 2);
  const Tensor b = random_tensor({1, 2}, DType::f64, 3);
  EXPECT_LT(largest_difference(linalg::mode_product(linalg::mode_product(x, a, 0), b, 2),
                               linalg::mode_product(linalg::mode_product(x, b, 2), a, 0)),
            1e-12);
}

TEST(ModeProduct, NamesWhatDoesNotFit) {
  EXPECT_EQ(message_of<ShapeError>([] { linalg::mode_product(Tensor::zeros({3, 5}), Tensor::zeros({2, 4}), 1); }),
            "mode_product: matrix is [2, 4], tensor is [3, 5]; its 4 columns must equal size 5 of mode 1");
}

}  // namespace
}  // namespace tessera::testing
