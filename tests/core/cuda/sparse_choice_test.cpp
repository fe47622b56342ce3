// The way that a sparse product takes on a GPU: a clock's choice, which is recorded before it is used and taken again without
// measuring. Without a clock the dense kernels run.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "core/device/decisions.h"
#include "core/ops/sparse_product.h"
#include "core/ops/sparse_product_cuda.h"
#include "core/rng.h"
#include "tests/support/gpu.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

constexpr std::int64_t kRows = 257, kIn = 128, kOut = 64;
static_assert(2.0 * kRows * kIn * kOut >= kLeastFlopsToMeasure);

// In each tile of 16 rows all rows keep the same quarter of the columns.
SparseWeightPtr tiles_of_16() {
  const Tensor mask = Tensor::zeros({kOut, kIn}, DType::u8);
  for (std::int64_t i = 0; i < mask.numel(); ++i) {
    mask.data<std::uint8_t>()[i] = (i / kIn / 16 + i % kIn * 5) % 4 == 0 ? 1 : 0;
  }
  return std::make_shared<SparseWeight>(mask);
}

Tensor drawn(const Shape& shape, std::uint64_t index) {
  const Tensor x = Tensor::empty(shape);
  fill_uniform(x, RngStream(3, "sparse_choice_test", "values"), -1, 1, index);
  return x.to(Device::cuda());
}

class CudaSparseChoice : public GpuTest {
 protected:
  Tensor forward(const SparseWeightPtr& weight) const {
    return sparse_linear(Var(drawn({kRows, kIn}, 1)), Var(drawn({weight->count()}, 2)), weight).value();
  }
};

TEST_F(CudaSparseChoice, IsTheClocksAndIsTakenAgain) {
  const SparseWeightPtr weight = tiles_of_16();
  const Tensor want = forward(weight);
  std::map<std::string, std::string> measured;
  const DecisionScope scope({.measure = true, .on_measured = [&](const std::string& key, const std::string& choice) {
                               EXPECT_TRUE(measured.emplace(key, choice).second) << key << " was measured before";
                             }});
  EXPECT_LE(relative_error(forward(weight), want), 1e-5);
  bool ran = false;
  for (const auto& [key, choice] : std::map(measured)) {
    if (!key.starts_with("cuda.sparse.forward linear ")) continue;
    EXPECT_NE(key.find(" pieces4 "), std::string::npos) << key;
    const std::size_t before = cuda::sparse_runs(choice);
    forward(weight);
    EXPECT_EQ(cuda::sparse_runs(choice), before + 1);
    ran = true;
  }
  EXPECT_TRUE(ran);
}

TEST_F(CudaSparseChoice, IsDenseWithoutAClock) {
  const SparseWeightPtr weight = tiles_of_16();
  const std::size_t before = cuda::sparse_runs("dense");
  forward(weight);
  const DecisionScope scope(DecisionPolicy{});
  forward(weight);
  EXPECT_EQ(cuda::sparse_runs("dense"), before + 2);
}

TEST_F(CudaSparseChoice, OffersPiecesOnlyWhereRowsKeepTheSameColumns) {
  const DecisionScope scope({.forced = "pieces"});
  const std::size_t before = cuda::sparse_runs("pieces");
  forward(tiles_of_16());
  EXPECT_EQ(cuda::sparse_runs("pieces"), before + 1);
  const Tensor mask = Tensor::zeros({kOut, kIn}, DType::u8);
  for (std::int64_t r = 0; r < kOut; ++r) mask.data<std::uint8_t>()[r * kIn + r] = 1;
  forward(std::make_shared<SparseWeight>(mask));
  EXPECT_EQ(cuda::sparse_runs("pieces"), before + 1);
}

}  // namespace
}  // namespace tessera::testing
