#include "core/linalg/chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "core/support/error.h"
#include "tests/core/linalg/naive_contract.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

struct Operand {
  std::string labels;
  bool result = false;  // an intermediate result of a step
};

using Sizes = std::map<char, std::int64_t>;

struct ChainCase {
  std::string equation;
  Sizes sizes;

  std::vector<std::string> operands() const {
    std::vector<std::string> labels(1);
    for (const char c : equation.substr(0, equation.find("->"))) {
      if (c == ',') {
        labels.emplace_back();
      } else {
        labels.back() += c;
      }
    }
    return labels;
  }
  std::vector<Tensor> tensors(DType dtype) const {
    std::vector<Tensor> all;
    for (const std::string& labels : operands()) {
      std::vector<std::int64_t> shape;
      for (const char c : labels) shape.push_back(sizes.at(c));
      all.push_back(random_tensor(Shape(std::span<const std::int64_t>(shape)), dtype, all.size() + 1));
    }
    return all;
  }
};

double product(const std::string& labels, const Sizes& sizes) {
  double count = 1;
  for (const char c : labels) count *= static_cast<double>(sizes.at(c));
  return count;
}

// The least (FLOPs, elements of intermediates) over all orders of pairwise contractions.
std::pair<double, double> brute_force(const std::vector<Operand>& operands, const std::string& output, const Sizes& sizes) {
  if (operands.size() == 1) return {0, 0};
  std::pair<double, double> best{1e300, 1e300};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    for (std::size_t j = i + 1; j < operands.size(); ++j) {
      std::string all = operands[i].labels;
      for (const char c : operands[j].labels) {
        if (all.find(c) == std::string::npos) all += c;
      }
      std::vector<Operand> rest;
      std::string outside = output;
      for (std::size_t o = 0; o < operands.size(); ++o) {
        if (o == i || o == j) continue;
        rest.push_back(operands[o]);
        outside += operands[o].labels;
      }
      Operand joined{"", true};
      for (const char c : all) {
        if (outside.find(c) != std::string::npos) joined.labels += c;
      }
      const double kept = rest.empty() ? 0 : product(joined.labels, sizes);
      rest.push_back(joined);
      const auto [flops, elements] = brute_force(rest, output, sizes);
      best = std::min(best, std::pair(flops + 2 * product(all, sizes), elements + kept));
    }
  }
  return best;
}

const std::vector<ChainCase> kChains{
    {"ab,bc,cd->ad", {{'a', 7}, {'b', 2}, {'c', 9}, {'d', 3}}},
    {"ab,bc,cd->ad", {{'a', 2}, {'b', 9}, {'c', 3}, {'d', 11}}},
    {"ab,bc,cd,de->ae", {{'a', 5}, {'b', 1}, {'c', 9}, {'d', 2}, {'e', 7}}},
    {"ab,bc,cd,de,ef->fa", {{'a', 3}, {'b', 5}, {'c', 1}, {'d', 5}, {'e', 2}, {'f', 4}}},
    {"aib,bjc,ckd->aijkd", {{'a', 1}, {'i', 4}, {'b', 3}, {'j', 5}, {'c', 2}, {'k', 3}, {'d', 1}}},  // a tensor train
    {"pqr,ap,bq,cr->abc", {{'p', 2}, {'q', 3}, {'r', 2}, {'a', 5}, {'b', 4}, {'c', 6}}},  // Tucker
    {"ak,bk,ck->abc", {{'a', 4}, {'b', 3}, {'c', 5}, {'k', 2}}},  // CP: an index in three operands
    {"a,b,ab->", {{'a', 5}, {'b', 7}}},
    {"a,bc,c->ab", {{'a', 4}, {'b', 3}, {'c', 5}}},  // operands that share nothing
    {"ab,ab,ab->ab", {{'a', 3}, {'b', 2}}},
    {"ab,bc,ca->", {{'a', 3}, {'b', 4}, {'c', 5}}},
    {"nab,nbc,cd->nad", {{'n', 3}, {'a', 4}, {'b', 2}, {'c', 6}, {'d', 5}}},
    {"ab,bc->ca", {{'a', 3}, {'b', 4}, {'c', 5}}},
};

TEST(Chain, OrderIsTheBestOfAll) {
  for (const ChainCase& c : kChains) {
    SCOPED_TRACE(c.equation);
    std::vector<Operand> operands;
    for (const std::string& labels : c.operands()) operands.push_back({labels});
    const auto [flops, elements] = brute_force(operands, c.equation.substr(c.equation.find("->") + 2), c.sizes);
    const linalg::ChainPlan plan = linalg::plan_chain(c.equation, c.tensors(DType::f32));
    EXPECT_EQ(plan.steps.size(), operands.size() - 1);
    EXPECT_EQ(plan.flops, flops);
    EXPECT_EQ(static_cast<double>(plan.bytes), 4 * elements);
  }
}

TEST(Chain, ResultIsThatOfLoops) {
  for (const ChainCase& c : kChains) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      SCOPED_TRACE(str(c.equation, ' ', dtype));
      const std::vector<Tensor> tensors = c.tensors(dtype);
      const Tensor y = linalg::contract(c.equation, tensors);
      EXPECT_EQ(y.dtype(), dtype);
      EXPECT_TRUE(y.is_contiguous());
      EXPECT_LT(largest_difference(y, naive_contract(c.equation, tensors)), dtype == DType::f32 ? 1e-3 : 1e-11);
    }
  }
}

TEST(Chain, OrderFollowsTheSizes) {
  const auto first_step = [](const Sizes& sizes) {
    const linalg::ChainPlan plan = linalg::plan_chain("ab,bc,cd->ad", ChainCase{"ab,bc,cd->ad", sizes}.tensors(DType::f64));
    return plan.steps.front().equation;
  };
  EXPECT_EQ(first_step({{'a', 2}, {'b', 50}, {'c', 50}, {'d', 50}}), "ab,bc->ac");
  EXPECT_EQ(first_step({{'a', 50}, {'b', 50}, {'c', 50}, {'d', 2}}), "bc,cd->bd");
}

// 1 / a + 1 / c = 1 / b + 1 / d makes the FLOPs of both orders equal: 2 ac (b + d) and 2 bd (a + c).
TEST(Chain, EqualFlopsAreDecidedByBytes) {
  for (const auto& [sizes, first] : std::vector<std::pair<Sizes, std::string>>{
           {{{'a', 3}, {'b', 4}, {'c', 6}, {'d', 4}}, "bc,cd->bd"}, {{{'a', 4}, {'b', 3}, {'c', 4}, {'d', 6}}, "ab,bc->ac"}}) {
    const ChainCase c{"ab,bc,cd->ad", sizes};
    const linalg::ChainPlan plan = linalg::plan_chain(c.equation, c.tensors(DType::f32));
    EXPECT_EQ(plan.steps.front().equation, first);
    EXPECT_EQ(plan.flops, 288);
    EXPECT_EQ(plan.bytes, 4 * 16);
  }
}

TEST(Chain, OneOperandIsPutInOrder) {
  const std::vector<Tensor> x{random_tensor({2, 3, 4})};
  const Tensor y = linalg::contract("abc->cab", x);
  EXPECT_TRUE(y.is_contiguous());
  EXPECT_EQ(values(y), values(x[0].permute({2, 0, 1})));
  EXPECT_TRUE(linalg::plan_chain("abc->cab", x).steps.empty());
}

TEST(Chain, TenOperandsAreTheMost) {
  std::string equation = "ab";
  std::vector<Tensor> tensors{random_tensor({2, 2})};
  for (char c = 'b'; tensors.size() < 10; ++c) {
    equation += str(',', std::string(1, c), std::string(1, static_cast<char>(c + 1)));
    tensors.push_back(random_tensor({2, 2}, DType::f64, tensors.size() + 1));
  }
  Tensor expected = tensors[0];
  for (std::size_t i = 1; i < tensors.size(); ++i) expected = naive_matmul(expected, tensors[i]);
  EXPECT_LT(largest_difference(linalg::contract(equation + "->ak", tensors), expected), 1e-10);
  tensors.push_back(tensors[0]);
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::contract(equation + ",kl->al", tensors); }),
            str("contract: '", equation, ",kl->al' names 11 operands; a chain has at most 10"));
}

TEST(Chain, NamesWhatDoesNotFit) {
  const std::vector<Tensor> x{Tensor::zeros({2, 3}), Tensor::zeros({3, 4}), Tensor::zeros({5, 2})};
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::contract("ab,bc,cd->ad", x); }),
            "contract: index 'c' is 4 in operand 2 [3, 4] and 5 in operand 3 [5, 2]; sizes must be equal");
  EXPECT_EQ(message_of<ShapeError>([&] { linalg::contract("ab,bc->ac", x); }),
            "contract: 3 operands are given, the equation names 2");
}

}  // namespace
}  // namespace tessera::testing
