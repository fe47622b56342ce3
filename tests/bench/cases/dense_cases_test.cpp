// The rivals compute what our ops compute, from and to the same tensors. Small shapes are measured in every way of the sweep.
#include "bench/cases/dense_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "bench/result_lines.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

constexpr TurnOptions kOnce{.rounds = 1, .seconds = 0};

double peak() { return 100; }

void expect_names(const std::vector<Contestant>& sides, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    EXPECT_TRUE(std::ranges::any_of(sides, [&](const Contestant& side) { return side.name == name; })) << name;
  }
}

// Reads every key that the tables need. measure_dense itself throws if two sides disagree.
void expect_measured(const DenseCase& dense) {
  SCOPED_TRACE(str(dense.op, ' ', dense.shape, ' ', dense.pass));
  const Value row = measure_dense(dense, kOnce, peak);
  EXPECT_EQ(row.at("rival_sweep").as_list().size(), dense.rivals.size());
  EXPECT_GT(row.at("ratio").at("median").as_double(), 0);
  EXPECT_GT(row.at("blocked_ratio").at("median").as_double(), 0);
  for (const auto& [key, mark, value] : describe_surroundings(1).as_map()) {
    EXPECT_EQ(row.find(key), nullptr) << key << " would replace what every line says of its surroundings";
  }
  EXPECT_DOUBLE_EQ(row.at("peak_share").as_double(), row.at("gflops").as_double() / 100);
}

TEST(DenseCases, ProductsAgreeInEveryWay) {
  const DenseCase dense = product_case({33, 17, 29});
  expect_names(dense.rivals, {"matmul", "matmul, b packed", "sgemm", "inner product"});
  expect_measured(dense);
}

TEST(DenseCases, ConvolutionsAgreeInEveryPassAndWay) {
  for (const ConvShape& shape :
       {ConvShape{2, 32, 32, 9, 3}, ConvShape{2, 16, 32, 10, 3, 2}, ConvShape{3, 16, 48, 7, 1}, ConvShape{2, 48, 48, 9, 3, 1, 48},
        ConvShape{2, 32, 32, 11, 3, 2, 32}, ConvShape{2, 32, 64, 7, 3, 1, 2}}) {
    for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_input, ConvPass::backward_weight}) {
      const DenseCase dense = conv_case(pass, shape);
      expect_names(dense.rivals, {"direct, NHWC, any weights", "direct, any layout"});
      if (shape.pointwise()) expect_names(dense.rivals, {"sgemm"});
      expect_measured(dense);
    }
  }
}

TEST(DenseCases, WinogradIsAmongTheRivals) {
  if (!__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "oneDNN's Winograd needs AVX-512";
  const DenseCase dense = conv_case(ConvPass::forward, {2, 32, 32, 16, 3});
  expect_names(dense.rivals, {"Winograd"});
  expect_names(dense.blocked, {"Winograd, blocked", "direct, in blocks of channels"});
  expect_names(conv_rivals(ConvPass::forward, {2, 32, 32, 16, 3},
                           {Tensor::zeros({2, 16, 16, 32}), Tensor::zeros({32, 3, 3, 32}), Tensor::zeros({2, 16, 16, 32})},
                           ConvUse::inference),
               {"Winograd", "direct, images in blocks"});
}

// Inference lays its weights out once. Ways that do so do not see later writes to the weights.
TEST(DenseCases, AnInferenceAgreesAndKeepsTheWeightsThatItLaidOut) {
  for (const ConvShape& shape : {ConvShape{2, 32, 32, 9, 3}, ConvShape{3, 16, 48, 7, 1}, ConvShape{2, 48, 48, 9, 3, 1, 48}}) {
    SCOPED_TRACE(to_string(shape));
    const Tensor weight = random_tensor(shape.weight(), "weight");
    const ConvTensors tensors{random_tensor(shape.x(), "x"), weight, Tensor::empty(shape.y())};
    const auto spoil = [&] { tensors.y.fill(NAN); };
    std::vector<Contestant> sides = conv_rivals(ConvPass::forward, shape, tensors);
    const std::vector<Contestant> inference = conv_rivals(ConvPass::forward, shape, tensors, ConvUse::inference);
    expect_names(inference, {"direct, NHWC, any weights", "direct, any layout"});
    if (shape.pointwise()) expect_names(inference, {"matmul, b packed before"});
    sides.insert(sides.end(), inference.begin(), inference.end());
    check_agreement(sides, spoil, 1e-4);

    const auto largest_after = [&](const std::vector<Contestant>& ways) {
      const auto way = std::ranges::find(ways, "direct, any layout", &Contestant::name);
      way->run();
      return *std::ranges::max_element(std::span(tensors.y.data<float>(), static_cast<std::size_t>(tensors.y.numel())));
    };
    weight.fill(0.0);
    EXPECT_GT(largest_after(inference), 0.1f);
    EXPECT_EQ(largest_after(conv_rivals(ConvPass::forward, shape, tensors)), 0.0f);
  }
}

TEST(DenseCases, AGradientIsNoInference) {
  const ConvShape shape{2, 16, 16, 7, 3};
  const ConvTensors tensors{Tensor::zeros(shape.x()), Tensor::zeros(shape.weight()), Tensor::zeros(shape.y())};
  EXPECT_THROW(conv_rivals(ConvPass::backward_input, shape, tensors, ConvUse::inference), InternalError);
}

TEST(DenseCases, WithoutARivalTheCaseIsNamed) {
  DenseCase dense = conv_case(ConvPass::backward_weight, {2, 16, 16, 7, 3});
  dense.blocked.clear();
  EXPECT_EQ(message_of<InternalError>([&] { measure_dense(dense, kOnce, peak); }),
            "conv2d 2x7x7x16 -> 16, 3x3, backward_weight: oneDNN has no fast way in its own layouts; needs one to compare with");
  dense.rivals.clear();
  const std::string message = message_of<InternalError>([&] { measure_dense(dense, kOnce, peak); });
  EXPECT_NE(message.find("no fast way on our tensors"), std::string::npos) << message;
}

TEST(DenseCases, AWrongRivalIsRefused) {
  DenseCase dense = product_case({33, 17, 29});
  dense.rivals.front().run = [] {};
  EXPECT_THROW(measure_dense(dense, kOnce, peak), NumericError);
}

TEST(DenseCases, ThePeakIsMeasuredBetweenTheSweepAndTheTurns) {
  DenseCase dense = product_case({33, 17, 29});
  int our_runs = 0;
  int their_runs = 0;
  const auto counted = [](Contestant& side, int& runs) {
    side.run = [run = side.run, &runs] {
      ++runs;
      run();
    };
  };
  counted(dense.ours, our_runs);
  for (Contestant& side : dense.rivals) counted(side, their_runs);
  const int rivals = static_cast<int>(dense.rivals.size());
  int peaks = 0;
  const Value row = measure_dense(dense, kOnce, [&] {
    EXPECT_EQ(our_runs, 1);  // the results were compared
    EXPECT_GT(their_runs, 2 * rivals);  // the rivals were also swept
    return 200.0 + peaks++;
  });
  EXPECT_EQ(peaks, 1);
  EXPECT_GT(our_runs, 1);
  EXPECT_EQ(row.at("fma_peak_gflops").as_double(), 200);
}

TEST(DenseCases, ACrippledRivalStopsTheProgram) {
  const std::string message = message_of<InternalError>([] { guarded_rival_gflops(1e9); });
  EXPECT_NE(message.find("not a fair rival"), std::string::npos) << message;
}

TEST(DenseShapes, CountWhatTheyCost) {
  EXPECT_DOUBLE_EQ((ProductShape{2, 3, 5}).flops(), 60);
  const ConvShape stem{8, 3, 64, 224, 7, 2};
  EXPECT_EQ(stem.y(), (Shape{8, 112, 112, 64}));
  EXPECT_DOUBLE_EQ(stem.flops(), 2.0 * 8 * 112 * 112 * 64 * 7 * 7 * 3);
  EXPECT_EQ(to_string(stem), "8x224x224x3 -> 64, 7x7, stride 2");
  EXPECT_EQ(passes_of(stem).size(), 2u);  // an image needs no gradient
  const ConvShape depthwise{8, 128, 128, 56, 3, 2, 128};
  EXPECT_EQ(depthwise.weight(), (Shape{128, 3, 3, 1}));
  EXPECT_DOUBLE_EQ(depthwise.flops(), 2.0 * 8 * 28 * 28 * 128 * 3 * 3);
  EXPECT_EQ(to_string(depthwise), "8x56x56x128 -> 128, 3x3, stride 2, depthwise");
  EXPECT_EQ(to_string(ConvShape{2, 32, 64, 7, 3, 1, 2}), "2x7x7x32 -> 64, 3x3, 2 groups");
  EXPECT_EQ(std::ranges::count_if(conv_shapes(), [](const ConvShape& shape) { return shape.groups == shape.in; }), 3);
  for (const ConvShape& shape : conv_shapes())
    EXPECT_EQ(shape.y(), conv2d_output_shape(shape.x(), shape.weight(), shape.options()));
}

}  // namespace
}  // namespace tessera::bench
