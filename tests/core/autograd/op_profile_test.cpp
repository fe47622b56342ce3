#include "core/autograd/op_profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "core/autograd/backward.h"
#include "core/autograd/numeric_check.h"
#include "core/ops/arithmetic.h"
#include "core/ops/attention.h"
#include "core/ops/batch_norm.h"
#include "core/ops/conv2d.h"
#include "core/ops/embedding.h"
#include "core/ops/linear.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/relu.h"
#include "core/ops/view.h"
#include "core/rng.h"

namespace tessera {
namespace {

Var leaf(const Shape& shape) { return Var(Tensor::full(shape, 0.5), true); }
Var constant(const Shape& shape) { return Var(Tensor::full(shape, 0.5)); }

std::vector<ProfileRow> rows_of(const std::function<void()>& body) {
  Profile profile;
  {
    const ProfileScope scope(profile);
    body();
  }
  return profile.rows();
}

const ProfileRow& row(const std::vector<ProfileRow>& rows, ProfilePart part, std::string_view what, std::string_view layer = "") {
  static const ProfileRow none{ProfilePart::rest, "none", "", 0, 0, 0, {}};
  for (const ProfileRow& candidate : rows) {
    if (candidate.part == part && candidate.what == what && candidate.layer == layer) return candidate;
  }
  ADD_FAILURE() << "no row " << what << " " << name_of(part) << " of '" << layer << "'";
  return none;
}

Var run_as(const char* path, const std::function<Var()>& body) {
  const ModuleScope scope(keep_path(path));
  return body();
}

// y = sum(relu(x W1') W2'). The input of the first layer needs no gradient.
TEST(OpProfile, NamesOpsByLayerAndCountsTheirWork) {
  const Var x = constant({4, 3});
  const Var w1 = leaf({5, 3});
  const Var w2 = leaf({2, 5});
  const std::vector<ProfileRow> rows = rows_of([&] {
    const Var hidden = run_as("fc1", [&] { return linear(x, w1, Var()); });
    const Var active = run_as("act", [&] { return relu(hidden); });
    backward(sum(run_as("fc2", [&] { return linear(active, w2, Var()); })));
  });
  const ProfileRow& first = row(rows, ProfilePart::forward, "linear", "fc1");
  EXPECT_EQ(first.calls, 1);
  EXPECT_GT(first.kernel_ns, 0);
  EXPECT_EQ(first.work.flops, 2 * 4 * 5 * 3);
  EXPECT_EQ(first.work.bytes, 4 * (4 * 3 + 5 * 3 + 4 * 5));
  const ProfileRow& first_back = row(rows, ProfilePart::backward, "linear", "fc1");
  EXPECT_EQ(first_back.work.flops, 2 * 4 * 5 * 3) << "the gradient of the weight alone";
  EXPECT_EQ(first_back.work.bytes, 4 * (4 * 5 + 4 * 3 + 5 * 3 + 5 * 3)) << "grad_y, x, weight, its gradient";
  EXPECT_EQ(row(rows, ProfilePart::backward, "linear", "fc2").work.flops, 2 * 2 * 4 * 2 * 5) << "both gradients";
  EXPECT_EQ(row(rows, ProfilePart::forward, "relu", "act").work.flops, 0);
  EXPECT_EQ(row(rows, ProfilePart::forward, "relu", "act").work.bytes, 4 * (20 + 20));
  EXPECT_EQ(row(rows, ProfilePart::backward, "relu", "act").work.bytes, 4 * (20 + 20 + 20));
  EXPECT_EQ(row(rows, ProfilePart::forward, "sum").calls, 1);
}

TEST(OpProfile, CountsConvolutionsByGroup) {
  const std::vector<ProfileRow> rows = rows_of([] {
    conv2d(constant({2, 7, 5, 6}), constant({9, 3, 3, 2}), Var(), {.padding = {1, 1}, .groups = 3});
  });
  EXPECT_EQ(row(rows, ProfilePart::forward, "conv2d").work.flops, 2 * (2 * 7 * 5 * 9) * (3 * 3 * 2));
}

TEST(OpProfile, SeesConvolutionsWithTheirRectifier) {
  const NoGrad no_grad;
  const std::vector<ProfileRow> rows = rows_of([] {
    run_as("conv1", [] { return conv2d_relu(constant({2, 7, 5, 6}), constant({9, 1, 1, 6}), constant({9}), Var()); });
    conv2d_relu(constant({1, 1, 1, 3}), constant({2, 1, 1, 3}), Var(), constant({1, 1, 1, 2}));
  });
  const ProfileRow& first = row(rows, ProfilePart::forward, "conv2d_relu", "conv1");
  EXPECT_EQ(first.work.flops, 2 * (2 * 7 * 5 * 9) * 6);
  EXPECT_EQ(first.work.bytes, 4 * (2 * 7 * 5 * (6 + 9) + 9 * 6 + 9));
  EXPECT_EQ(row(rows, ProfilePart::forward, "conv2d_relu").work.bytes, 4 * (3 + 6 + 2 + 2)) << "the residual too";
}

TEST(OpProfile, CountsProductsOfAnyOrder) {
  const std::int64_t flops = 2 * 3 * 4 * 5 * 7;  // three products [4, 5] x [5, 7]
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      for (const bool folded : {false, true}) {  // one b for all three products
        SCOPED_TRACE(str(a, b, folded));
        const Shape right = b ? Shape{7, 5} : Shape{5, 7};
        const Var y = folded ? leaf(right) : leaf({3, right[0], right[1]});
        const std::vector<ProfileRow> rows = rows_of([&] {
          backward(sum(matmul(leaf(a ? Shape{3, 5, 4} : Shape{3, 4, 5}), y, {.transpose_a = a, .transpose_b = b})));
        });
        EXPECT_EQ(row(rows, ProfilePart::forward, "matmul").work.flops, flops);
        EXPECT_EQ(row(rows, ProfilePart::backward, "matmul").work.flops, 2 * flops);
      }
    }
  }
}

// Four products in the backward of attention, for two in its forward, whether q, k and v are three tensors or one.
TEST(OpProfile, CountsAttentionsGradients) {
  constexpr std::int64_t kHeads = 2, kWidth = 8, kPositions = 5;
  const std::int64_t flops = 2 * 2 * 3 * kHeads * kWidth * kPositions * kPositions;
  const auto expect = [&](const std::vector<ProfileRow>& rows) {
    EXPECT_EQ(row(rows, ProfilePart::forward, "attention").work.flops, flops);
    EXPECT_EQ(row(rows, ProfilePart::backward, "attention").work.flops, 2 * flops);
  };
  expect(rows_of([&] {
    const Shape each{3, kPositions, kHeads, kWidth};
    backward(sum(attention(leaf(each), leaf(each), leaf(each))));
  }));
  expect(rows_of([&] { backward(sum(packed_attention(leaf({3, kPositions, 3 * kHeads * kWidth}), kHeads, kHeads))); }));
}

TEST(OpProfile, SumsOfGradientsAreRowsOfWhoseValueItIs) {
  const Var x = leaf({6});
  const auto twice = [&] {
    const Var y = run_as("body", [&] { return relu(x); });
    backward(sum(add(y, y)));
  };
  const std::vector<ProfileRow> once = rows_of(twice);
  EXPECT_EQ(row(once, ProfilePart::backward, "accumulate", "body").calls, 1);
  const std::vector<ProfileRow> again = rows_of(twice);  // the leaf has a gradient already
  EXPECT_EQ(row(again, ProfilePart::backward, "accumulate").calls, 1);
  EXPECT_EQ(row(again, ProfilePart::backward, "accumulate").work.bytes, 3 * 6 * 4);
}

TEST(OpProfile, ViewsMoveNoBytes) {
  const Var x = leaf({2, 3});
  const std::vector<ProfileRow> rows = rows_of([&] { backward(sum(reshape(x, {6}))); });
  EXPECT_EQ(row(rows, ProfilePart::forward, "reshape").work.bytes, 0);
  EXPECT_EQ(row(rows, ProfilePart::forward, "reshape").kernel_ns, 0);
}

TEST(OpProfile, ACopyIsKernelTime) {
  const Tensor x = Tensor::full({64, 64}, 1.0).permute({1, 0});
  const std::vector<ProfileRow> rows = rows_of([&] {
    x.clone();
    charge_profile(ProfilePart::metrics, "copy");
  });
  EXPECT_GT(row(rows, ProfilePart::metrics, "copy").kernel_ns, 0);
}

// The gradient of x overwrites that of y, and still counts as written.
TEST(OpProfile, AGradientWrittenInPlaceCounts) {
  const Var x = leaf({8, 4});
  const Tensor mean = Tensor::zeros({4});
  const auto rows = rows_of([&] {
    const Var y = batch_norm(x, leaf({4}), leaf({4}), mean, mean.clone(), {.training = true});
    backward(mul(y, constant({8, 4})), Tensor::full({8, 4}, 1.0));
  });
  const std::int64_t image = 8 * 4 * 4;
  const std::int64_t channels = 4 * 4;
  EXPECT_EQ(row(rows, ProfilePart::backward, "batch_norm").work.bytes, 3 * image + 4 * channels);
}

// logits = h W' with h = rows of W: the table is used twice. The rows' gradient is added to that of the product.
Var tied_loss(const Var& table) {
  const Tensor ids = Tensor::from(std::vector<std::int64_t>{1, 1, 4, 0, 1}, {5});
  const Var rows = embedding(ids, table);
  return sum(mul(linear(rows, table, Var()), linear(rows, table, Var())));
}

TEST(OpProfile, LookedUpRowsAreAddedToOtherUsesOfTheirTable) {
  const Var table = leaf({5, 3});
  const std::vector<ProfileRow> rows = rows_of([&] { backward(tied_loss(table)); });
  const ProfileRow& added = row(rows, ProfilePart::backward, "embedding");
  EXPECT_EQ(added.work.bytes, 3 * 4 * 5 * 3);
  EXPECT_GT(added.kernel_ns, 0);
  EXPECT_EQ(row(rows, ProfilePart::backward, "accumulate").calls, 2) << "of the rows and of the table by the two products";
}

// Neither reporting leaves nor a numeric check changes a byte.
TEST(OpProfile, LookedUpRowsGiveTheSameBytesInEverySweep) {
  const Tensor values = Tensor::empty({5, 3});
  fill_normal(values, RngStream(1, "test", "table"), 0, 1);
  const auto gradient = [&](bool check, const LeafDone& done) {
    const Var table(values.clone(), true);
    std::optional<NumericCheck> checked;
    if (check) checked.emplace();
    backward(tied_loss(table), {}, done);
    return table.grad().to_vector<float>();
  };
  int told = 0;
  const std::vector<float> plain = gradient(false, {});
  EXPECT_EQ(gradient(false, [&](const Node&) { ++told; }), plain);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(gradient(true, {}), plain);
  const Var rows_of_table(values.clone(), true), product(values.clone(), true);
  const Tensor ids = Tensor::from(std::vector<std::int64_t>{1, 1, 4, 0, 1}, {5});
  const Var rows = embedding(ids, rows_of_table);
  backward(sum(mul(linear(rows, product, Var()), linear(rows, product, Var()))));
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const float apart = rows_of_table.grad().to_vector<float>()[i] + product.grad().to_vector<float>()[i];
    EXPECT_NEAR(plain[i], apart, 1e-5 * (1 + std::abs(apart)));
  }
}

}  // namespace
}  // namespace tessera
