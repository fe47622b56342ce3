#include "core/autograd/backward.h"

#include <gtest/gtest.h>

#include "core/autograd/accumulate.h"
#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/ops/relu.h"
#include "core/support/error.h"

namespace tessera {
namespace {

Var leaf(double value, const Shape& shape = {}) { return Var(Tensor::full(shape, value), true); }

TEST(Backward, AddsTheGradientsOfBothUses) {
  const Var x = leaf(3.0);
  backward(add(x, x));
  EXPECT_EQ(x.grad().item(), 2.0);
  backward(mul(x, x));
  EXPECT_EQ(x.grad().item(), 8.0);  // gradients add up over sweeps
}

TEST(Backward, VisitsANodeOnceAllItsUsesHaveCome) {
  const Var x = leaf(2.0);
  const Var y = mul(x, x);  // 4, dy/dx = 4
  const Var z = add(mul(y, y), y);  // dz/dy = 9
  backward(add(z, mul(y, x)));  // + y + 4 x
  EXPECT_EQ(x.grad().item(), 36.0 + 4.0 + 8.0);
}

TEST(Backward, SurvivesAChainOfFiftyThousandOps) {
  const Var x = leaf(1.0);
  Var y = x;
  for (int i = 0; i < 50'000; ++i) y = add_scalar(y, 1.0);
  EXPECT_EQ(y.value().item(), 50'001.0);
  backward(y);
  EXPECT_EQ(x.grad().item(), 1.0);
  Var unswept = x;
  for (int i = 0; i < 50'000; ++i) unswept = mul_scalar(unswept, 1.0);
}

TEST(Backward, RefusesASecondSweep) {
  const Var x = leaf(1.0);
  const Var y = mul(x, x);
  backward(y);
  EXPECT_THROW(backward(y), InternalError);
}

TEST(Backward, NeedsAGradientOfTheValuesShape) {
  const Var x = leaf(1.0, {2, 3});
  EXPECT_THROW(backward(relu(x)), ShapeError);
  EXPECT_THROW(backward(relu(x), Tensor::zeros({3})), ShapeError);
  EXPECT_THROW(backward(Var(Tensor::scalar(1.0))), InternalError);
}

TEST(Backward, NoGradRecordsNothing) {
  const Var x = leaf(1.0);
  const NoGrad no_grad;
  EXPECT_FALSE(grad_enabled());
  const Var y = mul(x, x);
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(y.is_leaf());
  {
    const EnableGrad enabled;
    EXPECT_TRUE(mul(x, x).requires_grad());
  }
  EXPECT_FALSE(grad_enabled());
}

TEST(Backward, LeavesDoNotShareGradients) {
  const Var a = leaf(1.0, {3});
  const Var b = leaf(2.0, {3});
  backward(sum(add(a, b)));
  a.grad().fill(7.0);
  EXPECT_EQ(b.grad().to_vector<float>(), std::vector<float>(3, 1.0f));
  const Tensor upstream = Tensor::full({3}, 1.0);
  const Var c = leaf(1.0, {3});
  backward(add_scalar(c, 1.0), upstream);
  c.grad().fill(5.0);
  EXPECT_EQ(upstream.to_vector<float>(), std::vector<float>(3, 1.0f));
}

// y = x^3 by recomputation: its backward records and sweeps its own graph.
class Cube final : public Op {
 public:
  explicit Cube(Tensor x) : x_(std::move(x)) {}
  std::string_view name() const override { return "cube"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    const EnableGrad enabled;
    const Var x(x_, true);
    tessera::backward(mul(mul(x, x), x), grad_y);
    return {x.grad()};
  }

 private:
  Tensor x_;
};

TEST(Backward, IsReentrant) {
  const Var x = leaf(2.0);
  const Var y = record(std::make_unique<Cube>(x.value()), {x}, Tensor::scalar(8.0));
  backward(mul(y, y));
  EXPECT_EQ(x.grad().item(), 2 * 8 * 3 * 4);
}

TEST(Backward, ReleasesTheGraphAsItGoes) {
  const Var x = leaf(1.0, {10'000});
  const std::size_t before = memory_stats(Device::cpu()).in_use;
  Var y = x;
  for (int i = 0; i < 10; ++i) y = relu(y);
  y = sum(y);
  backward(y);
  y = Var();
  EXPECT_LE(memory_stats(Device::cpu()).in_use, before + 2 * x.value().bytes());  // the gradient stays
}

// A leaf is reported once no unvisited op reads it. For most leaves that is long before the sweep ends.
TEST(Backward, TellsOfALeafAsSoonAsItsGradientIsComplete) {
  const Var shared = leaf(2.0), first = leaf(3.0), last = leaf(5.0), frozen(Tensor::scalar(1.0));
  const Var y = mul(add(mul(mul(shared, first), shared), frozen), last);  // 13 * 5
  std::vector<const Node*> done;
  std::vector<double> gradients;
  backward(y, {}, [&](const Node& leaf) {
    done.push_back(&leaf);
    gradients.push_back(leaf.grad.item());
    if (&leaf == last.node().get()) {
      EXPECT_FALSE(first.grad().defined()) << "nothing in front of the last op was visited";
    }
  });
  EXPECT_EQ(done, (std::vector<const Node*>{last.node().get(), shared.node().get(), first.node().get()}));
  EXPECT_EQ(gradients, (std::vector<double>{13, 60, 20}));
  backward(mul(shared, first), {}, [&](const Node& leaf) { gradients.push_back(leaf.grad.item()); });
  EXPECT_EQ(gradients, (std::vector<double>{13, 60, 20, 63, 22})) << "sums over sweeps";
}

// An op that gives no gradient to its second input.
class First final : public Op {
 public:
  std::string_view name() const override { return "first"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override { return {grad_y, {}}; }
};

TEST(Backward, TellsOfLeavesBehindAnOpThatGivesNoGradient) {
  const Var x = leaf(2.0), behind = leaf(3.0), alone = leaf(1.0);
  const Var y = record(std::make_unique<First>(), {mul(x, x), mul(mul(x, behind), alone)}, Tensor::scalar(4.0));
  std::vector<const Node*> done;
  backward(y, {}, [&](const Node& leaf) { done.push_back(&leaf); });
  EXPECT_EQ(done, std::vector<const Node*>{x.node().get()}) << "those without a gradient are not told";
  EXPECT_EQ(x.grad().item(), 4);
  done.clear();
  backward(x, {}, [&](const Node& leaf) { done.push_back(&leaf); });
  EXPECT_EQ(done, std::vector<const Node*>{x.node().get()}) << "a leaf by itself";
}

class Gives final : public Op {
 public:
  explicit Gives(Tensor grad) : grad_(std::move(grad)) {}
  std::string_view name() const override { return "gives"; }
  Grads backward(const Tensor&, NeedsGrad) override { return {grad_}; }

 private:
  Tensor grad_;
};

// An op of one input whose gradient is 1. The op returns it, or adds it to an existing sum.
class Adds final : public Op {
 public:
  explicit Adds(int& added) : added_(added) {}
  std::string_view name() const override { return "adds"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override { return {Tensor::full({2}, 1.0, grad_y.dtype())}; }
  bool add_backward(const Tensor&, const Tensor& sum) override {
    ++added_;
    accumulate(sum, Tensor::full({2}, 1.0, sum.dtype()));
    return true;
  }

 private:
  int& added_;
};

// An op adds to the sum only if other uses have produced a sum that nothing else holds.
TEST(Backward, AnOpMayAddToTheSumOfOtherUses) {
  int added = 0;
  const auto adds = [&](const Var& x) { return record(std::make_unique<Adds>(added), {x}, Tensor::scalar(0.0)); };
  const Var alone = leaf(2.0, {2});
  backward(adds(alone));
  EXPECT_EQ(alone.grad().to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(added, 0);
  const Var x = leaf(2.0, {2});
  const Var first = adds(x);
  backward(add(first, sum(mul(x, x))));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{5, 5}));
  EXPECT_EQ(added, 1);
  const Var shared = leaf(2.0, {2});
  const Var last = adds(shared);
  const Tensor held = Tensor::full({2}, 3.0);
  backward(add(last, record(std::make_unique<Gives>(held), {shared}, Tensor::scalar(0.0))));
  EXPECT_EQ(shared.grad().to_vector<float>(), (std::vector<float>{4, 4}));
  EXPECT_EQ(held.to_vector<float>(), (std::vector<float>{3, 3}));
  EXPECT_EQ(added, 1);
}

class Broken final : public Op {
 public:
  std::string_view name() const override { return "broken"; }
  Grads backward(const Tensor&, NeedsGrad) override { return {Tensor::zeros({5})}; }
};

TEST(Backward, NamesAnOpWhoseGradientDoesNotFit) {
  const Var x = leaf(1.0, {3});
  try {
    backward(record(std::make_unique<Broken>(), {x}, Tensor::scalar(1.0)));
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "backward: broken returned a gradient f32 [5] on cpu for an input f32 [3] on cpu");
  }
}

}  // namespace
}  // namespace tessera
