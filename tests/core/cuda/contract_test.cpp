// Contractions on a GPU: the CPU's plans with only the copies that are needed, and the CPU's results.
#include "core/linalg/contract.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "core/device/decisions.h"
#include "core/linalg/chain.h"
#include "core/support/error.h"
#include "tests/core/linalg/contract_cases.h"
#include "tests/support/gpu.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

using linalg::ContractCopies;

class CudaContract : public GpuTestWithParam<DType> {
 protected:
  // Sums of at most a few hundred products of normal numbers, each with an error of 1e-7 of either sign.
  static double tolerance() { return GetParam() == DType::f32 ? 1e-4 : 1e-12; }

  static void expect_the_cpus(const std::string& equation, const Tensor& a, const Tensor& b, const Tensor& on_a,
                              const Tensor& on_b) {
    SCOPED_TRACE(str(equation, ' ', describe(a), ' ', describe(b)));
    const Tensor y = linalg::contract(equation, on_a, on_b);
    EXPECT_EQ(y.device(), gpu());
    EXPECT_EQ(y.dtype(), a.dtype());
    EXPECT_TRUE(y.is_contiguous());
    EXPECT_LT(largest_difference(y.to(Device::cpu()), linalg::contract(equation, a, b)), tolerance());
  }
  static void expect_the_cpus(const std::string& equation, const std::vector<Tensor>& operands) {
    expect_the_cpus(equation, operands[0], operands[1], operands[0].to(gpu()), operands[1].to(gpu()));
  }
};

TEST_P(CudaContract, EachSingleIndexCaseIsTheCpus) {
  for (const SingleIndexCase& c : table_2()) {
    expect_the_cpus(c.equation, operands_of(c.equation, {{'m', 7}, {'n', 5}, {'p', 11}, {'k', 13}}, GetParam()));
  }
}

TEST_P(CudaContract, BatchesLoopsAndCopiesAreTheCpus) {
  for (const CountedCase& c : kCounted) expect_the_cpus(c.equation, operands_of(c.equation, kCountedSizes, GetParam()));
}

TEST_P(CudaContract, SizesOfOneAreTheCpus) {
  for (const SingleIndexCase& c : table_2()) {
    for (const char single : {'m', 'n', 'p', 'k'}) {
      std::map<char, std::int64_t> sizes{{'m', 3}, {'n', 5}, {'p', 2}, {'k', 4}};
      sizes[single] = 1;
      expect_the_cpus(c.equation, operands_of(c.equation, sizes, GetParam()));
    }
    expect_the_cpus(c.equation, operands_of(c.equation, {{'m', 1}, {'n', 1}, {'p', 1}, {'k', 1}}, GetParam()));
  }
}

TEST_P(CudaContract, ASumOverNothingIsZero) {
  const auto nothing = [](const Shape& shape) { return Tensor::empty(shape, GetParam(), gpu()); };
  const Tensor y = linalg::contract("mk,kn->mn", nothing({3, 0}), nothing({0, 2}));
  EXPECT_EQ(y.device(), gpu());
  EXPECT_EQ(values(y.to(Device::cpu())), std::vector<double>(6, 0.0));
  EXPECT_EQ(linalg::contract("mk,kn->nm", nothing({0, 4}), nothing({4, 2})).shape(), (Shape{2, 0}));
}

// Makes the same view on either device: to() would copy a view without its gaps.
using View = std::function<Tensor(const Tensor&)>;

TEST_P(CudaContract, TakesStridedOperandsAsTheyLie) {
  const Tensor a = random_tensor({9, 14}, GetParam()), b = random_tensor({5, 11, 14}, GetParam(), 2);
  const Tensor on_a = a.to(gpu()), on_b = b.to(gpu());
  const auto expect = [&](const std::string& equation, const View& left, const View& right, int copies) {
    expect_the_cpus(equation, left(a), right(b), left(on_a), right(on_b));
    const linalg::ContractPlan plan = linalg::plan_contract(equation, left(on_a), right(on_b));
    EXPECT_EQ(plan.copies, copies) << plan.text;
  };
  const View rows_apart = [](const Tensor& x) { return x.slice(0, 1, 8).slice(1, 0, 13); };  // [7, 13], rows 14 apart
  const View k_fastest = [](const Tensor& x) { return x.slice(2, 1, 14).slice(1, 3, 10).permute({2, 0, 1}); };  // [13, 5, 7]
  for (const std::string equation : {"mk,knp->mnp", "mk,knp->pmn", "mk,knp->npm", "mk,knp->pnm"}) {
    expect(equation, rows_apart, k_fastest, 0);
  }
  expect(
      "km,kn->mn",
      [&](const Tensor& x) {
        return rows_apart(x).permute({1, 0}).slice(1, 2, 5);
      },
      [&](const Tensor& x) {
        return k_fastest(x).slice(1, 2, 3).reshape({13, 7});
      },
      0);
  const View repeated = [](const Tensor& x) { return x.slice(0, 0, 1).slice(1, 0, 13).expand({7, 13}); };
  expect("mk,knp->mnp", repeated, k_fastest, 1);
}

TEST_P(CudaContract, AChainIsTheCpus) {
  const std::vector<Tensor> operands{random_tensor({6, 5}, GetParam()), random_tensor({5, 3, 4}, GetParam(), 2),
                                     random_tensor({4, 7}, GetParam(), 3)};
  const std::vector<Tensor> on_gpu{operands[0].to(gpu()), operands[1].to(gpu()), operands[2].to(gpu())};
  const Tensor y = linalg::contract("ar,rbs,sc->cab", on_gpu);
  EXPECT_EQ(y.device(), gpu());
  EXPECT_LT(largest_difference(y.to(Device::cpu()), linalg::contract("ar,rbs,sc->cab", operands)), tolerance());
}

// Both operands are [128, 128], with rows 129 and 128 apart: a choice for one must not be reused for the other.
TEST_P(CudaContract, DecisionsTellStridesApart) {
  const Tensor a = random_tensor({128, 129}, GetParam()), b = random_tensor({128, 128}, GetParam(), 2);
  const Tensor on_a = a.to(gpu()), on_b = b.to(gpu());
  std::set<std::string> keys;
  const DecisionScope scope(
      {.measure = true, .on_measured = [&](const std::string& key, const std::string&) { keys.insert(key); }});
  expect_the_cpus("mk,kn->mn", a.slice(1, 0, 128), b, on_a.slice(1, 0, 128), on_b);
  expect_the_cpus("mk,kn->mn", b, b, on_b, on_b);
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_TRUE(keys.begin()->starts_with("cuda.matmul m128 n128 k128 b1 ta0 tb0 a129+0 ")) << *keys.begin();
  EXPECT_TRUE(keys.rbegin()->starts_with(str("cuda.matmul m128 n128 k128 b1 ta0 tb0 ", GetParam()))) << *keys.rbegin();
}

TEST_P(CudaContract, CopiesWhatIsNeededAlone) {
  const std::vector<Tensor> operands = operands_of("km,pkn->pnm", {{'m', 8}, {'n', 8}, {'p', 8}, {'k', 8}}, GetParam());
  EXPECT_EQ(linalg::plan_contract("km,pkn->pnm", operands[0], operands[1]).copies, 1);
  const Tensor a = operands[0].to(gpu()), b = operands[1].to(gpu());
  EXPECT_EQ(linalg::plan_contract("km,pkn->pnm", a, b, ContractCopies::where_faster).copies, 0);
  expect_the_cpus("km,pkn->pnm", operands);
}

TEST_P(CudaContract, NanOfAnOperandComesOut) {
  const Tensor a = random_tensor({3, 4}, GetParam());
  a.slice(0, 1, 2).fill(std::numeric_limits<double>::quiet_NaN());
  const Tensor y = linalg::contract("mk,kn->mn", a.to(gpu()), random_tensor({4, 2}, GetParam()).to(gpu()));
  const std::vector<double> got = values(y.to(Device::cpu()));
  EXPECT_TRUE(std::isfinite(got[0]) && std::isnan(got[2]) && std::isnan(got[3]) && std::isfinite(got[4]));
}

TEST_P(CudaContract, NamesOperandsOnDifferentDevices) {
  const Tensor a = Tensor::zeros({2, 3}, GetParam(), gpu()), b = Tensor::zeros({3, 5}, GetParam());
  EXPECT_EQ(message_of<DeviceError>([&] { linalg::contract("mk,kn->mn", a, b); }),
            str("contract: 'mk,kn->mn': devices differ: operand 1 is ", describe(a), ", operand 2 is ", describe(b),
                "; both must be equal"));
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaContract, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& test) { return str(test.param); });

}  // namespace
}  // namespace tessera::testing
