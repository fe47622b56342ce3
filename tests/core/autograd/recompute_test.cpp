#include "core/autograd/recompute.h"

#include <gtest/gtest.h>

#include <map>

#include "core/autograd/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "core/storage.h"

namespace tessera {
namespace {

Tensor numbers(const Shape& shape, double first) {
  Tensor x = Tensor::empty(shape);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(first + 0.1 * static_cast<double>(i % 7));
  return x;
}

Var chain(std::span<const Var> o) { return matmul(exp(matmul(o[0], o[1])), o[2]); }

TEST(Recompute, GivesTheSameBytesAndKeepsNothingBetween) {
  const Var x(numbers({64, 8}, -0.3), true), a(numbers({8, 512}, -0.2), true), b(numbers({512, 3}, 0.1), true);
  const std::vector<Var> operands{x, a, b};
  const auto in_use = [] { return memory_stats(Device::cpu()).in_use; };
  const std::size_t start = in_use();
  Var kept = chain(operands);
  const std::size_t all = in_use() - start;
  backward(kept, Tensor::full(kept.shape(), 1));
  std::vector<std::vector<float>> expected{kept.value().to_vector<float>()};
  for (const Var& operand : operands) {
    expected.push_back(operand.grad().to_vector<float>());
    operand.set_grad({});
  }
  kept = Var();
  const std::size_t before = in_use();
  const Var again = recompute(operands, chain);
  EXPECT_LT(in_use() - before, all / 8);
  backward(again, Tensor::full(again.shape(), 1));
  EXPECT_EQ(again.value().to_vector<float>(), expected[0]);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(operands[i].grad().to_vector<float>(), expected[i + 1]) << i;
}

TEST(Recompute, GivesNoGradientToWhatNeedsNone) {
  const Var x(numbers({4, 8}, -0.3)), a(numbers({8, 5}, -0.2), true), b(numbers({5, 3}, 0.1));
  const std::vector<Var> operands{x, a, b};
  int runs = 0;
  const Var y = recompute(operands, [&](std::span<const Var> o) {
    ++runs;
    return chain(o);
  });
  backward(y, Tensor::full(y.shape(), 1));
  EXPECT_EQ(runs, 2) << "f runs again in the backward";
  EXPECT_TRUE(a.grad().defined());
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(b.grad().defined());
}

TEST(Recompute, RunsOnceWhereNothingIsRecorded) {
  int runs = 0;
  const std::vector<Var> operands{Var(numbers({2, 2}, 0), true)};
  const auto count = [&](std::span<const Var> o) {
    ++runs;
    return add_scalar(o[0], 1);
  };
  {
    const NoGrad no_grad;
    EXPECT_FALSE(recompute(operands, count).requires_grad());
  }
  EXPECT_EQ(runs, 1);
  backward(recompute(operands, count), Tensor::full({2, 2}, 1));
  EXPECT_EQ(runs, 3);
}

// A module's parameters are leaves that f reads although they are not its arguments.
TEST(Recompute, LeavesTheGradientsOfLeavesThatAreReadInside) {
  const Var a(numbers({8, 12}, -0.2), true), b(numbers({12, 3}, 0.1), true), frozen(numbers({3}, 0.3));
  const std::vector<Var> parameters{frozen, a, b};
  int runs = 0;
  const auto f = [&](const Var& x) {
    ++runs;
    return add(matmul(exp(matmul(x, a)), b), frozen);
  };
  for (const bool x_trained : {true, false}) {
    const Var x(numbers({4, 8}, -0.3), x_trained);
    const auto grads_of = [&](const Var& y) {
      backward(y, Tensor::full(y.shape(), 1));
      std::vector<std::vector<float>> grads{y.value().to_vector<float>()};
      for (const Var& leaf : {x, a, b}) {
        if (leaf.requires_grad()) grads.push_back(leaf.grad().to_vector<float>());
        leaf.set_grad({});
      }
      return grads;
    };
    const auto kept = grads_of(f(x));
    runs = 0;
    EXPECT_EQ(grads_of(recompute(x, parameters, f)), kept);
    EXPECT_EQ(runs, 2) << "f runs again in the backward";
    EXPECT_FALSE(frozen.grad().defined());
  }
}

// Each leaf is reported with its complete gradient, including what other ops and a second recomputed part add to it.
TEST(Recompute, TellsOfLeavesThatAreReadInsideWhenTheyAreDone) {
  const Var x(numbers({4, 8}, -0.3), true), a(numbers({8, 8}, -0.2), true), b(numbers({8, 8}, 0.1), true);
  const std::vector<Var> parameters{a, b};
  const auto f = [&](const Var& from) { return matmul(matmul(from, a), b); };
  const auto value = [&] { return matmul(recompute(recompute(x, parameters, f), parameters, f), b); };
  backward(value(), Tensor::full({4, 8}, 1));
  std::vector<std::vector<float>> expected;
  for (const Var& leaf : {x, a, b}) {
    expected.push_back(leaf.grad().to_vector<float>());
    leaf.set_grad({});
  }
  std::map<const Node*, std::vector<float>> done;
  backward(value(), Tensor::full({4, 8}, 1),
           [&](const Node& leaf) { EXPECT_TRUE(done.emplace(&leaf, leaf.grad.to_vector<float>()).second) << "twice"; });
  EXPECT_EQ(done, (std::map<const Node*, std::vector<float>>{
                      {x.node().get(), expected[0]}, {a.node().get(), expected[1]}, {b.node().get(), expected[2]}}));
}

TEST(Recompute, RecordsNothingWhereNoLeafIsTrained) {
  const Var x(numbers({2, 2}, 0)), frozen(numbers({2}, 1));
  int runs = 0;
  const auto f = [&](const Var& from) {
    ++runs;
    return add(from, frozen);
  };
  EXPECT_FALSE(recompute(x, std::vector<Var>{frozen}, f).requires_grad());
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace tessera
