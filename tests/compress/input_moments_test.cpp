#include "compress/input_moments.h"

#include <gtest/gtest.h>

#include <limits>

#include "compress/factorise.h"
#include "compress/pass_runner.h"
#include "core/config/read.h"
#include "core/linalg/mode_product.h"
#include "core/linalg/relative_error.h"
#include "core/linalg/tucker.h"
#include "core/support/error.h"
#include "layers/compressed.h"
#include "layers/conv2d.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

const Shape kInput{4, 5, 6, 8};

// conv 8 -> 12, flatten, linear 360 -> 10.
std::unique_ptr<Module> network() {
  auto root = std::make_unique<Sequential>();
  root->add_child("conv", std::make_unique<Conv2d>(Conv2dConfig{.in = 8, .out = 12, .padding = {1, 1}}));
  root->add_child("flatten", std::make_unique<Flatten>());
  root->add_child("linear", std::make_unique<Linear>(LinearConfig{.in = 360, .out = 10}));
  initialize(*root, 1);
  return root;
}

// The channels differ greatly in scale. The last is always 0, and the one before it is a combination of the first two.
Tensor batch_of(std::int64_t i) {
  Tensor x = random_tensor(kInput, DType::f32, 20 + static_cast<std::uint64_t>(i));
  for (std::int64_t row = 0; row < x.numel() / 8; ++row) {
    float* const v = x.data<float>() + 8 * row;
    for (int c = 0; c < 8; ++c) v[c] *= static_cast<float>(1 << c) / 16;
    v[6] = v[0] - v[1];
    v[7] = 0;
  }
  return x;
}

std::vector<NamedTensor> parts_of(std::int64_t i) { return {{"x", batch_of(i)}}; }

const TrainingBatches kBatches{.parts = parts_of};

Tensor product(const Tensor& a, const Tensor& b) { return linalg::mode_product(b, a, 0); }

TEST(InputWeights, AreTheRootOfTheSecondMomentsAndItsInverse) {
  const auto root = network();
  const auto weights = input_weights(*root, std::vector<std::string>{"conv", "linear"}, kBatches, 3);
  ASSERT_EQ(weights.size(), 2U);
  const InputWeights& conv = weights.at("conv");
  std::vector<double> expected(64);
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::vector<double> x = values(batch_of(i));
    for (std::size_t row = 0; row < x.size() / 8; ++row) {
      for (std::size_t a = 0; a < 8; ++a) {
        for (std::size_t b = 0; b < 8; ++b)
          expected[8 * a + b] += x[8 * row + a] * x[8 * row + b] / (3.0 * static_cast<double>(x.size()) / 8);
      }
    }
  }
  double trace = 0;
  for (std::size_t a = 0; a < 8; ++a) trace += expected[9 * a];
  for (std::size_t a = 0; a < 8; ++a) expected[9 * a] += 1e-4 * trace / 8;
  const std::vector<double> squared = values(product(conv.root, conv.root));
  for (std::size_t i = 0; i < 64; ++i) EXPECT_NEAR(squared[i], expected[i], 1e-5 * trace) << i;
  const std::vector<double> identity = values(product(conv.root, conv.inverse));
  for (std::size_t i = 0; i < 64; ++i) EXPECT_NEAR(identity[i], i % 9 == 0 ? 1 : 0, 1e-8) << i;
  EXPECT_EQ(weights.at("linear").root.shape(), (Shape{360, 360}));
}

auto filled_with(double value) {
  return [value](std::int64_t) { return std::vector<NamedTensor>{{"x", Tensor::full(kInput, value)}}; };
}

TEST(InputWeights, OfZerosAreNoneAndOfNanAnError) {
  const auto root = network();
  const std::vector<std::string> paths{"conv"};
  EXPECT_TRUE(input_weights(*root, paths, {.parts = filled_with(0)}, 2).empty());
  const TrainingBatches broken{.parts = filled_with(std::numeric_limits<double>::quiet_NaN())};
  EXPECT_EQ(message_of<NumericError>([&] { input_weights(*root, paths, broken, 1); }),
            "layer 'conv': its inputs hold NaN or Inf, so that its weight cannot be decomposed by them");
}

PassReport factorise(std::unique_ptr<Module>& root, const std::string& json, const TrainingBatches* batches = &kBatches) {
  FactorisePass pass(read<FactoriseConfig>(parse_json(json, "test")));
  return run_pass(root, pass, kInput, nullptr, batches);
}

// ||(W - W~) C^(1/2)||, the error of the layer's output.
double answer_error(Module& root, const std::string& path, const Tensor& weight, const InputWeights& inputs) {
  const Tensor composed = as_compressed(find_module(root, path))->dense_weight();
  std::vector<double> difference = values(weight);
  const std::vector<double> other = values(composed);
  double squares = 0;
  const std::size_t in = static_cast<std::size_t>(weight.dim(-1));
  for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= other[i];
  const std::vector<double> by = values(inputs.root);
  for (std::size_t row = 0; row < difference.size() / in; ++row) {
    for (std::size_t b = 0; b < in; ++b) {
      double sum = 0;
      for (std::size_t a = 0; a < in; ++a) sum += difference[row * in + a] * by[a * in + b];
      squares += sum * sum;
    }
  }
  return std::sqrt(squares);
}

struct Case {
  const char* name;
  const char* layer;
  const char* block;  // the block without its weights
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class WeightedFactorise : public ::testing::TestWithParam<Case> {};

// The output is closer than with the plain decomposition, whose weight is closer.
TEST_P(WeightedFactorise, KeepsTheAnswers) {
  const std::string path = GetParam().layer;
  auto plain = network(), weighted = network();
  const Tensor weight = find_module(*plain, path).parameter("weight").value().clone();
  const InputWeights inputs = input_weights(*plain, std::vector{path}, kBatches, 32).at(path);
  const std::string block = str(R"({"layers": ")", path, "\", ", GetParam().block);
  const PassReport plain_report = factorise(plain, block + "}");
  const PassReport report = factorise(weighted, block + R"(, "weighted": true})");
  const double error = answer_error(*weighted, path, weight, inputs);
  EXPECT_LT(error, 0.95 * answer_error(*plain, path, weight, inputs));
  EXPECT_GT(report.layers.at(0).relative_error, plain_report.layers.at(0).relative_error);
}

INSTANTIATE_TEST_SUITE_P(Forms, WeightedFactorise,
                         ::testing::Values(Case{"svd", "linear", R"("format": "svd", "ranks": {"rank": 3})"},
                                           Case{"tucker2", "conv", R"("format": "tucker2", "ranks": {"out": 5, "in": 4})"},
                                           Case{"tucker2_without_in_factor", "conv",
                                                R"("format": "tucker2", "ranks": {"out": 5, "in": 8})"},
                                           Case{"spatial_svd", "conv", R"("format": "spatial_svd", "ranks": {"rank": 6})"},
                                           Case{"cp", "conv", R"("format": "cp", "ranks": {"rank": 8})"}),
                         [](const auto& c) { return c.param.name; });

// The optimum of the weighted problem (Eckart & Young for W C^(1/2)).
TEST(WeightedFactorise, BySvdIsTheBest) {
  auto root = network();
  const Tensor weight = find_module(*root, "linear").parameter("weight").value().clone();
  const InputWeights inputs = input_weights(*root, std::vector<std::string>{"linear"}, kBatches, 32).at("linear");
  factorise(root, R"({"layers": "linear", "format": "svd", "ranks": {"rank": 3}, "weighted": true})");
  const std::vector<double> s = linalg::mode_spectrum(linalg::mode_product(weight.to(DType::f64), inputs.root, 1), 0);
  double tail = 0;
  for (std::size_t i = 3; i < s.size(); ++i) tail += s[i] * s[i];
  EXPECT_NEAR(answer_error(*root, "linear", weight, inputs), std::sqrt(tail), 1e-5 * std::sqrt(tail) + 1e-6);
}

TEST(WeightedFactorise, IsPlainWithoutBatches) {
  auto plain = network(), planned = network();
  const char* const block = R"({"layers": "linear", "format": "svd", "ranks": {"rank": 3})";
  factorise(plain, str(block, "}"));
  factorise(planned, str(block, R"(, "weighted": true})"), nullptr);
  EXPECT_EQ(values(as_compressed(find_module(*plain, "linear"))->dense_weight()),
            values(as_compressed(find_module(*planned, "linear"))->dense_weight()));
}

TEST(WeightedFactorise, IsRefusedWhereInputsAreSplit) {
  EXPECT_EQ(
      message_of<ConfigError>([] {
        read<FactoriseConfig>(parse_json(R"({"layers": "*", "format": "tt", "ranks": {"macs": 0.5}, "weighted": true})", "test"));
      }),
      "test: weighted: tt splits the input channels, so that a product with their moments cannot be taken back; leave it out");
}

}  // namespace
}  // namespace tessera::testing
