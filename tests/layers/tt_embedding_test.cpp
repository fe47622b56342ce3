#include "layers/tt_embedding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/autograd/backward.h"
#include "core/config/read.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/linalg/relative_error.h"
#include "core/ops/embedding.h"
#include "core/support/counting.h"
#include "core/support/error.h"
#include "layers/builtin.h"
#include "layers/model_tree.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/layers/core_gradients.h"
#include "tests/layers/transformer_reference.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

const char* const kWays[]{"slices", "table"};

DecisionPolicy forced(const char* way) {
  DecisionPolicy policy;
  policy.forced = way;
  return policy;
}

struct Table {
  TtEmbeddingConfig config;
  std::vector<Shape> inputs;
};

const std::vector<Table>& tables() {
  static const std::vector<Table> all{
      // The product of the modes is the vocabulary itself: every combination of digits is a token.
      {{.vocabulary = 12, .width = 6, .vocabulary_modes = {3, 4}, .width_modes = {2, 3}, .ranks = {5}}, {{7}, {2, 3}, {1, 1}}},
      // A prime vocabulary, and a width with odd factors.
      {{.vocabulary = 257, .width = 15, .ranks = {4}}, {{3, 41}, {1}, {0, 5}}},
      {{.vocabulary = 23, .width = 27, .vocabulary_modes = {2, 3, 4}, .width_modes = {3, 3, 3}, .ranks = {4, 7}}, {{5, 2, 3}}},
      {{.vocabulary = 17, .width = 16, .vocabulary_modes = {2, 2, 3, 2}, .width_modes = {2, 2, 2, 2}, .ranks = {3, 5, 2}},
       {{4, 9}}},
      // A vocabulary with fewer tokens than digits.
      {{.vocabulary = 2, .width = 8, .vocabulary_modes = {1, 1, 2}, .width_modes = {2, 2, 2}, .ranks = {2, 3}}, {{4}}},
      {{.vocabulary = 1, .width = 7}, {{3}}}};
  return all;
}

// Checks values and every core's gradients from repeated tokens, with and without constant weights.
TEST(TtEmbedding, LooksUpRowsOfItsComposedTableInEveryWay) {
  for (const auto& [config, inputs] : tables()) {
    TtEmbedding layer(config);
    layer.reset_parameters(1);
    for (const auto& core : layer.parameters()) core->set_value(random_tensor(core->value().shape(), DType::f32, 5));
    SCOPED_TRACE(to_json(layer.config()));
    for (const Shape& shape : inputs) {
      const Tensor ids = whole_numbers(shape, config.vocabulary);
      const Var table(layer.dense_weight(), true);
      const Var expected = embedding(ids, table);
      const Tensor grad_y = random_tensor(expected.shape(), DType::f32, 3);
      backward(expected, grad_y);
      for (const char* way : kWays) {
        SCOPED_TRACE(str(way, ' ', shape));
        const DecisionScope scope(forced(way));
        for (const auto& core : layer.parameters()) core->zero_grad();
        const Var y = layer(Var(ids), {});
        EXPECT_EQ(y.shape(), layer.output_shape(shape));
        EXPECT_LT(linalg::relative_error(y.value(), expected.value()), 1e-5);
        backward(y, grad_y);
        expect_core_gradients(layer, table.grad());
        const NoGrad no_grad;
        const ConstantWeights constant;
        for (int call = 0; call < 2; ++call) {
          EXPECT_LT(linalg::relative_error(layer(Var(ids), {}).value(), expected.value()), 1e-5);
        }
      }
    }
  }
}

TEST(TtEmbedding, EveryTokenHasItsOwnRow) {
  TtEmbedding layer({.vocabulary = 257, .width = 6, .ranks = {3}});
  layer.reset_parameters(2);
  const Tensor all = Tensor::empty({257}, DType::i64);
  for (std::int64_t i = 0; i < 257; ++i) all.data<std::int64_t>()[i] = i;
  EXPECT_EQ(layer.dense_weight().shape(), (Shape{257, 6}));
  EXPECT_EQ(layer.to_dense()->forward(Var(all), {}).value().to_vector<float>(), layer.dense_weight().to_vector<float>());
  for (const char* way : kWays) {
    const DecisionScope scope(forced(way));
    EXPECT_LT(linalg::relative_error(layer(Var(all), {}).value(), layer.dense_weight()), 1e-5) << way;
  }
}

TEST(TtEmbedding, DigitsAreThoseOfTheMixedRadix) {
  const Tensor ids = Tensor::from(std::vector<std::int64_t>{0, 1, 3, 4, 11, 12, 22}, {7});
  const std::vector<Tensor> digits = digits_of(ids, 23, {2, 3, 4});
  using Digits = std::vector<std::int64_t>;
  EXPECT_EQ(digits[0].to_vector<std::int64_t>(), (Digits{0, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(digits[1].to_vector<std::int64_t>(), (Digits{0, 0, 0, 1, 2, 0, 2}));
  EXPECT_EQ(digits[2].to_vector<std::int64_t>(), (Digits{0, 1, 3, 0, 3, 0, 2}));
  const std::vector<Tensor> large = digits_of(Tensor::from(std::vector<std::int64_t>{50256}, {1}), 50257, {37, 37, 37});
  for (const auto& [k, digit] : {std::pair<std::size_t, std::int64_t>{0, 36}, {1, 26}, {2, 10}}) {
    EXPECT_EQ(large[k].to_vector<std::int64_t>().at(0), digit);
  }
}

// A GPU does not wait to report an invalid id: an op that meets a digit outside of its mode gives NaN.
TEST(TtEmbedding, WhatIsNoTokenHasADigitThatIsNone) {
  const Modes modes{2, 3, 4};
  for (const std::int64_t id :
       {std::int64_t{-1}, std::int64_t{-4}, std::int64_t{-24}, std::int64_t{23}, std::int64_t{24}, std::int64_t{1} << 40}) {
    const std::vector<Tensor> digits = digits_of(Tensor::from(std::vector<std::int64_t>{id}, {1}), 23, modes);
    bool outside = false;
    for (std::size_t k = 0; k < modes.size(); ++k) {
      const std::int64_t digit = digits[k].to_vector<std::int64_t>().at(0);
      outside = outside || digit < 0 || digit >= modes[k];
    }
    EXPECT_TRUE(outside) << id;
  }
}

TEST(TtEmbedding, RefusesWhatIsNoToken) {
  TtEmbedding layer({.vocabulary = 23, .width = 6, .ranks = {2}});
  const auto refusal = [&](std::int64_t id) {
    return message_of<ShapeError>([&] { layer(Var(Tensor::from(std::vector<std::int64_t>{0, id}, {1, 2})), {}); });
  };
  for (const char* way : kWays) {
    const DecisionScope scope(forced(way));
    EXPECT_EQ(refusal(23), "tt_embedding '': id out of range: input[1] is 23; needs 0 to 22") << "a row of padding";
    EXPECT_EQ(refusal(-1), "tt_embedding '': id out of range: input[1] is -1; needs 0 to 22");
    EXPECT_EQ(refusal(22), "");
  }
  EXPECT_EQ(message_of<DTypeError>([&] { layer(Var(Tensor::full({1, 1}, 1)), {}); }), "tt_embedding '': input is f32; needs i64");
  EXPECT_NE(message_of<ShapeError>([&] { layer.output_shape({1, std::int64_t{1} << 39}); }).find("2^40"), std::string::npos);
  EXPECT_EQ(layer.input_limit(), 23);
}

TEST(TtEmbedding, AnswersInTheDtypeThatIsComputedIn) {
  TtEmbedding layer({.vocabulary = 23, .width = 6, .ranks = {2}});
  layer.reset_parameters(1);
  const Var ids(whole_numbers({2, 4}, 23));
  for (const char* way : kWays) {
    const DecisionScope scope(forced(way));
    const Tensor exact = layer(ids, {}).value();
    EXPECT_EQ(exact.dtype(), DType::f32);
    const Var rounded = layer(ids, {.compute = DType::bf16});
    EXPECT_EQ(rounded.dtype(), DType::bf16);
    EXPECT_EQ(rounded.value().to(DType::f32).to_vector<float>(), exact.to(DType::bf16).to(DType::f32).to_vector<float>())
        << "rounded once";
    backward(rounded, normal({2, 4, 6}, 1).to(DType::bf16));
    EXPECT_EQ(layer.parameter("core1").grad().dtype(), DType::f32);
  }
}

TEST(TtEmbedding, FreshTablesHaveTheVarianceOfADenseOne) {
  TtEmbedding layer({.vocabulary = 256, .width = 64, .ranks = {32}});
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    layer.reset_parameters(seed);
    for (const double w : values(layer.dense_weight())) sum += w * w / (8 * 256 * 64);
  }
  EXPECT_NEAR(std::sqrt(sum), 0.02, 0.001);
  for (const auto& core : layer.parameters()) EXPECT_EQ(core->role(), ParameterRole::embedding);
  EXPECT_EQ(describe(*rebuild(describe(layer), builtin_layers())), describe(layer));
}

TEST(TtEmbedding, CountsWhatARowTakes) {
  const TtEmbedding layer(
      {.vocabulary = 23, .width = 30, .vocabulary_modes = {2, 3, 4}, .width_modes = {2, 3, 5}, .ranks = {3, 7}});
  Trace trace;
  layer.output_shape({1, 11}, &trace);
  EXPECT_EQ(trace.at(0).macs, 11 * (2 * 3 * 3 * 7 + 2 * 3 * 7 * 5));
  EXPECT_EQ(trace.at(0).parameters, 2 * 2 * 3 + 3 * 3 * 3 * 7 + 7 * 4 * 5);
  const TtRowCost row = tt_row_cost({2, 3, 5}, std::vector<std::int64_t>{3, 7});
  EXPECT_EQ(row.kept, (2 * 3) + (3 * 3 * 7) + (7 * 5) + (2 * 3 * 7)) << "three slices, and the product of two";
}

TEST(TtModes, OfAVocabularyAreNearEqualAndTheSmallestThatHoldIt) {
  EXPECT_EQ(padded_modes(50257, 2), (Modes{224, 225}));
  EXPECT_EQ(padded_modes(50257, 3), (Modes{37, 37, 37}));
  EXPECT_EQ(padded_modes(50257, 4), (Modes{15, 15, 15, 15}));
  EXPECT_EQ(padded_modes(257, 2), (Modes{16, 17}));
  EXPECT_EQ(padded_modes(256, 2), (Modes{16, 16}));
  EXPECT_EQ(padded_modes(256, 4), (Modes{4, 4, 4, 4}));
  EXPECT_EQ(padded_modes(2, 3), (Modes{1, 1, 2}));
  EXPECT_EQ(padded_modes(1, 2), (Modes{1, 1}));
  for (std::int64_t size = 1; size < 300; ++size) {
    for (const std::int64_t count : {2, 3, 4}) {
      const Modes modes = padded_modes(size, count);
      EXPECT_GE(product_of(modes), size);
      EXPECT_LE(modes.back() - modes.front(), 1);
      EXPECT_EQ(table_problem(modes, size, Modes(modes.size(), 1), 1), "");
    }
  }
  EXPECT_GE(product_of(padded_modes(std::numeric_limits<std::int64_t>::max(), 2)), std::int64_t{1} << 62);
}

TEST(TtEmbedding, ConfigsRefuseModesAndRanksThatCannotBe) {
  const auto refusal = [](const char* json) {
    return message_of<ConfigError>([&] { read<TtEmbeddingConfig>(parse_json(json, "test")); });
  };
  EXPECT_EQ(refusal(R"({"vocabulary": 17, "width": 6, "vocabulary_modes": [4, 4]})"),
            "test: vocabulary_modes 4·4 is 16, vocabulary is 17; needs as much or more");
  EXPECT_EQ(refusal(R"({"vocabulary": 17, "width": 6, "vocabulary_modes": [5, 7]})"),
            "test: vocabulary_modes 5·7 is 35, vocabulary is 17; needs twice as much at most");
  EXPECT_EQ(refusal(R"({"vocabulary": 17, "width": 6, "width_modes": [2, 4]})"), "test: width_modes 2·4 is 8, width is 6");
  EXPECT_EQ(refusal(R"({"vocabulary": 17, "width": 8, "width_modes": [2, 2, 2]})"),
            "test: vocabulary has 2 modes, width has 3; tt needs as many of each");
  EXPECT_EQ(refusal(R"({"vocabulary": 17, "width": 6, "ranks": [13]})"),
            "test: ranks: r1 is 13 between modes of 8 and 15; beside its neighbours legal range is 1..8");
  EXPECT_EQ(refusal(R"({"vocabulary": 0})"), "test: vocabulary: is 0; must be at least 1");
  EXPECT_EQ(message_of<ConfigError>([] {
              TtEmbedding({.vocabulary = 17, .width = 6, .vocabulary_modes = {4, 4}});
            }),
            "tt_embedding: vocabulary_modes 4·4 is 16, vocabulary is 17; needs as much or more");
}

}  // namespace
}  // namespace tessera::testing
