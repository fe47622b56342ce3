#include "core/linalg/contract.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/support/error.h"
#include "tests/core/linalg/contract_cases.h"
#include "tests/core/linalg/naive_contract.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

using linalg::ContractCopies;

void expect_matches(const std::string& equation, const std::vector<Tensor>& operands) {
  SCOPED_TRACE(str(equation, ' ', describe(operands[0]), ' ', describe(operands[1])));
  for (const ContractCopies copies : {ContractCopies::where_faster, ContractCopies::where_needed}) {
    const Tensor y = linalg::contract(equation, operands[0], operands[1], copies);
    EXPECT_EQ(y.dtype(), operands[0].dtype());
    EXPECT_TRUE(y.is_contiguous());
    // Sums of at most a few hundred products of normal numbers, each with an error of 1e-7 of either sign.
    EXPECT_LT(largest_difference(y, naive_contract(equation, operands)), y.dtype() == DType::f32 ? 1e-4 : 1e-12);
  }
}

// The plan with only those copies that no plan can avoid.
linalg::ContractPlan least_plan(const std::string& equation, const Tensor& a, const Tensor& b) {
  return linalg::plan_contract(equation, a, b, ContractCopies::where_needed);
}

TEST(Contract, EachSingleIndexCaseIsOneProduct) {
  const std::vector<SingleIndexCase> cases = table_2();
  ASSERT_EQ(cases.size(), 36U);
  std::map<ContractClass, int> counted;
  for (const SingleIndexCase& c : cases) {
    SCOPED_TRACE(c.equation);
    for (const DType dtype : {DType::f32, DType::f64}) {
      const std::vector<Tensor> operands = operands_of(c.equation, {{'m', 7}, {'n', 5}, {'p', 11}, {'k', 13}}, dtype);
      expect_matches(c.equation, operands);
      const linalg::ContractPlan plan = least_plan(c.equation, operands[0], operands[1]);
      SCOPED_TRACE(plan.text);
      EXPECT_EQ(plan.calls, 1);
      EXPECT_EQ(plan.loops, 0);
      EXPECT_EQ(plan.copies, c.expected == ContractClass::exceptional ? 1 : 0);
      if (c.expected != ContractClass::exceptional) {  // an exceptional case's copy may also flatten
        EXPECT_EQ(plan.one_gemm(), c.expected == ContractClass::gemm);
        EXPECT_EQ(plan.one_batched_gemm(), c.expected == ContractClass::batched);
      }
      EXPECT_EQ(plan.m * plan.n * plan.k * plan.batch, 7 * 5 * 11 * 13);
    }
    ++counted[c.expected];
  }
  EXPECT_EQ(counted[ContractClass::gemm], 8);
  EXPECT_EQ(counted[ContractClass::batched], 20);
  EXPECT_EQ(counted[ContractClass::exceptional], 8);
}

TEST(Contract, SizesOfOneTakeNoPartInAPlan) {
  for (const SingleIndexCase& c : table_2()) {
    for (const char single : {'m', 'n', 'p', 'k'}) {
      std::map<char, std::int64_t> sizes{{'m', 3}, {'n', 5}, {'p', 2}, {'k', 4}};
      sizes[single] = 1;
      for (const DType dtype : {DType::f32, DType::f64}) expect_matches(c.equation, operands_of(c.equation, sizes, dtype));
    }
    const std::map<char, std::int64_t> ones{{'m', 1}, {'n', 1}, {'p', 1}, {'k', 1}};
    const std::vector<Tensor> operands = operands_of(c.equation, ones, DType::f32);
    expect_matches(c.equation, operands);
    EXPECT_TRUE(least_plan(c.equation, operands[0], operands[1]).one_gemm());
    EXPECT_EQ(least_plan(c.equation, operands[0], operands[1]).copies, 0);
  }
}

TEST(Contract, ASumOverNothingIsZero) {
  const Tensor y = linalg::contract("mk,kn->mn", Tensor::empty({3, 0}), Tensor::empty({0, 2}));
  EXPECT_EQ(values(y), values(Tensor::zeros({3, 2})));
  EXPECT_EQ(least_plan("mk,kn->mn", Tensor::empty({3, 0}), Tensor::empty({0, 2})).calls, 0);
  EXPECT_EQ(linalg::contract("mk,kn->nm", random_tensor({0, 4}), random_tensor({4, 2})).shape(), (Shape{2, 0}));
  EXPECT_EQ(linalg::contract("k,k->", Tensor::empty({0}, DType::f64), Tensor::empty({0}, DType::f64)).item(), 0.0);
}

TEST(Contract, CountsCallsLoopsAndCopies) {
  for (const CountedCase& c : kCounted) {
    SCOPED_TRACE(c.equation);
    for (const DType dtype : {DType::f32, DType::f64}) {
      const std::vector<Tensor> operands = operands_of(c.equation, kCountedSizes, dtype);
      expect_matches(c.equation, operands);
      const linalg::ContractPlan plan = least_plan(c.equation, operands[0], operands[1]);
      SCOPED_TRACE(plan.text);
      EXPECT_EQ(plan.calls, c.calls);
      EXPECT_EQ(plan.batch, c.batch);
      EXPECT_EQ(plan.loops, c.loops);
      EXPECT_EQ(plan.copies, c.copies);
    }
  }
}

TEST(Contract, TakesStridedOperandsAsTheyLie) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor a = random_tensor({9, 14}, dtype), b = random_tensor({5, 11, 14}, dtype, 2);
    const Tensor left = a.slice(0, 1, 8).slice(1, 0, 13);  // [7, 13], rows 14 apart
    const Tensor right = b.slice(2, 1, 14).slice(1, 3, 10).permute({2, 0, 1});  // k fastest
    for (const std::string equation : {"mk,knp->mnp", "mk,knp->pmn", "mk,knp->npm", "mk,knp->pnm"})
      expect_matches(equation, {left, right});
    const linalg::ContractPlan plan = least_plan("mk,knp->mnp", left, right);
    EXPECT_TRUE(plan.one_batched_gemm()) << plan.text;  // n and p have a gap between them
    EXPECT_EQ(plan.copies, 0);
    expect_matches("km,kn->mn", {left.permute({1, 0}).slice(1, 2, 5), right.slice(1, 2, 3).reshape({13, 7})});
    // Repeated elements are copied, because no library takes a stride of 0.
    const Tensor repeated = random_tensor({1, 13}, dtype).expand({7, 13});
    expect_matches("mk,knp->mnp", {repeated, right});
    EXPECT_EQ(least_plan("mk,knp->mnp", repeated, right).copies, 1);
  }
}

// Small products run one by one in one thread. Larger ones run as batches on all threads.
TEST(Contract, LargerSizesReachTheThreadedKernels) {
  for (const SingleIndexCase& c : table_2()) {
    expect_matches(c.equation, operands_of(c.equation, {{'m', 23}, {'n', 20}, {'p', 19}, {'k', 31}}, DType::f32));
  }
}

linalg::ContractPlan plan_of_cube(const std::string& equation, std::int64_t size) {
  const std::vector<Tensor> operands = operands_of(equation, {{'m', size}, {'n', size}, {'p', size}, {'k', size}}, DType::f32);
  const linalg::ContractPlan plan = linalg::plan_contract(equation, operands[0], operands[1]);
  EXPECT_GE(plan.copies, least_plan(equation, operands[0], operands[1]).copies);
  return plan;
}

TEST(Contract, CopiesRatherThanMultiplyingManySmallMatrices) {
  EXPECT_TRUE(plan_of_cube("km,pkn->pnm", 8).one_gemm());
  EXPECT_EQ(plan_of_cube("km,pkn->pnm", 8).copies, 1);
  EXPECT_EQ(plan_of_cube("nk,pkm->pnm", 8).copies, 2);
  EXPECT_TRUE(plan_of_cube("km,pkn->pnm", 48).one_batched_gemm());
  EXPECT_EQ(plan_of_cube("km,pkn->pnm", 48).copies, 0);
}

// The columns of the right operand's matrices are size^2 elements apart.
TEST(Contract, CopiesRatherThanReadingColumnsPagesApart) {
  EXPECT_EQ(plan_of_cube("kp,mnk->pnm", 64).copies, 1);
  EXPECT_EQ(plan_of_cube("kp,mnk->pnm", 65).copies, 0);
}

TEST(Contract, LargerCopiesGiveTheSameProduct) {
  for (const SingleIndexCase& c : table_2()) {
    expect_matches(c.equation, operands_of(c.equation, {{'m', 32}, {'n', 32}, {'p', 32}, {'k', 32}}, DType::f32));
  }
}

TEST(Contract, NanOfAnOperandComesOut) {
  const Tensor a = random_tensor({3, 4}, DType::f32);
  a.slice(0, 1, 2).fill(std::numeric_limits<double>::quiet_NaN());
  const std::vector<double> y = values(linalg::contract("mk,kn->mn", a, random_tensor({4, 2}, DType::f32)));
  EXPECT_TRUE(std::isfinite(y[0]) && std::isnan(y[2]) && std::isnan(y[3]) && std::isfinite(y[4]));
}

TEST(Contract, NamesWhatDoesNotFit) {
  const Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({4, 5});
  const auto message = [&](const char* equation) { return message_of<ShapeError>([&] { linalg::contract(equation, a, b); }); };
  EXPECT_EQ(message("mk,kn->mn"), "contract: index 'k' is 3 in operand 1 [2, 3] and 4 in operand 2 [4, 5]; sizes must be equal");
  EXPECT_EQ(message("mk,knp->mnp"), "contract: operand 2 is [4, 5]; 'knp' needs 3 dimensions");
  EXPECT_EQ(message("mk,kn"), "contract: 'mk,kn' has no '->'; needs one, as in 'mk,kn->mn'");
  EXPECT_EQ(message("mk,kn->mx"), "contract: 'mk,kn->mx': index 'x' of the output stands in no operand");
  EXPECT_EQ(message("mm,mn->n"),
            "contract: 'mm,mn->n': index 'm' stands twice in operand 1; needs one letter for each dimension");
  EXPECT_EQ(message("mk,kn->mnm"),
            "contract: 'mk,kn->mnm': index 'm' stands twice in the output; needs one letter for each dimension");
  EXPECT_EQ(message("mk,kn->n"),
            "contract: 'mk,kn->n': index 'm' stands in operand 1 alone; needs to stand in another operand or in the output");
  EXPECT_EQ(message("m k,kn->mn"), "contract: 'm k,kn->mn': ' ' in operand 1 is no index; indices are letters");
  EXPECT_EQ(message("mk,kn,np->mp"), "contract: 'mk,kn,np->mp' names 3 operands; two tensors are given");
  EXPECT_EQ(message_of<DTypeError>([&] {
              linalg::contract("mk,kn->mn", a, Tensor::zeros({3, 2}, DType::f64));
            }),
            "contract: 'mk,kn->mn': dtypes are f32 and f64; both need f32, or both f64");
}

}  // namespace
}  // namespace tessera::testing
