// Embedding tables for tokens, positions, segments and the class token; and the layers that produce and consume sequences.
#include "layers/embedding.h"

#include <gtest/gtest.h>

#include "core/config/read.h"
#include "core/nn/attention_cache.h"
#include "layers/builtin.h"
#include "layers/class_token.h"
#include "layers/conv2d.h"
#include "layers/model_tree.h"
#include "layers/patches.h"
#include "layers/positions.h"
#include "layers/segments.h"
#include "tests/layers/transformer_reference.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

std::vector<float> row(const Tensor& table, std::int64_t i) { return table.slice(0, i, i + 1).contiguous().to_vector<float>(); }

std::vector<float> position(const Tensor& y, std::int64_t sample, std::int64_t i) {
  return y.slice(0, sample, sample + 1).slice(1, i, i + 1).contiguous().to_vector<float>();
}

std::vector<float> sum_of(std::vector<float> a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

TEST(Embedding, LooksRowsUpAndCollectsTheirGradients) {
  Embedding layer({.vocabulary = 5, .width = 3});
  draw(layer, 1);
  const Tensor ids = Tensor::from(std::vector<std::int64_t>{4, 0, 4, 2}, {2, 2});
  const Var y = layer(Var(ids), {});
  EXPECT_EQ(y.shape(), layer.output_shape({2, 2}));
  EXPECT_EQ(position(y.value(), 1, 0), row(layer.weight().value(), 4));
  const Tensor grad_y = normal({2, 2, 3}, 2);
  backward(y, grad_y);
  const Tensor grad = layer.weight().grad();
  EXPECT_EQ(row(grad, 4), sum_of(position(grad_y, 0, 0), position(grad_y, 1, 0)));
  EXPECT_EQ(row(grad, 2), position(grad_y, 1, 1));
  EXPECT_EQ(row(grad, 1), (std::vector<float>{0, 0, 0}));
}

TEST(Embedding, AnswersInTheDtypeThatIsComputedIn) {
  Embedding layer({.vocabulary = 5, .width = 3});
  const Var ids(whole_numbers({2, 4}, 5));
  EXPECT_EQ(layer(ids, {}).dtype(), DType::f32);
  const Var rounded = layer(ids, {.compute = DType::bf16});
  EXPECT_EQ(rounded.dtype(), DType::bf16);
  backward(rounded, normal({2, 4, 3}, 1).to(DType::bf16));
  EXPECT_EQ(layer.weight().grad().dtype(), DType::f32);
}

TEST(Embedding, RefusesWhatIsNoToken) {
  Embedding layer({.vocabulary = 5, .width = 3});
  EXPECT_THROW(layer(Var(Tensor::from(std::vector<std::int64_t>{5}, {1, 1})), {}), ShapeError);
  EXPECT_THROW(layer(Var(Tensor::full({1, 1}, 1)), {}), DTypeError);
  EXPECT_NE(message_of<ShapeError>([&] { layer.output_shape({1, std::int64_t{1} << 39}); }).find("2^40"), std::string::npos);
}

TEST(Positions, AddTheirRowsFromTheCacheOn) {
  Positions layer({.length = 7, .width = 3});
  draw(layer, 1);
  const Tensor& table = layer.parameter("weight").value();
  const Tensor x = normal({2, 4, 3}, 2);
  const Var y = layer(Var(x), {});
  EXPECT_EQ(position(y.value(), 1, 3), sum_of(position(x, 1, 3), row(table, 3)));
  const Tensor grad_y = normal({2, 4, 3}, 3);
  backward(y, grad_y);
  EXPECT_EQ(row(layer.parameter("weight").grad(), 2), sum_of(position(grad_y, 0, 2), position(grad_y, 1, 2)));
  EXPECT_EQ(row(layer.parameter("weight").grad(), 4), (std::vector<float>{0, 0, 0}));
  AttentionCache cache(7);
  cache.advance(3);
  const Context behind{.cache = &cache};
  EXPECT_EQ(position(layer(Var(x), behind).value(), 0, 3), sum_of(position(x, 0, 3), row(table, 6)));
  cache.advance(1);
  EXPECT_EQ(message_of<ShapeError>([&] { layer(Var(x), behind); }),
            "positions '': input is [2, 4, 3], its first position 4; there are 7 positions");
  EXPECT_EQ(message_of<ShapeError>([&] {
              layer.output_shape({2, 4, 2});
            }),
            "positions '': input is [2, 4, 2]; needs [n, positions, 3]");
}

TEST(Segments, AddTheRowOfTheirInputOrTheFirst) {
  Segments layer({.types = 3, .width = 2});
  draw(layer, 1);
  const Tensor& table = layer.parameter("weight").value();
  const Tensor x = normal({2, 3, 2}, 2);
  EXPECT_EQ(position(layer(Var(x), {}).value(), 1, 2), sum_of(position(x, 1, 2), row(table, 0)));
  const Tensor segments = Tensor::from(std::vector<std::int64_t>{0, 1, 1, 2, 2, 0}, {2, 3});
  const std::vector<NamedTensor> inputs{{"segments", segments}};
  const Var y = layer(Var(x), {.inputs = inputs});
  EXPECT_EQ(position(y.value(), 1, 1), sum_of(position(x, 1, 1), row(table, 2)));
  const Tensor grad_y = normal({2, 3, 2}, 3);
  backward(y, grad_y);
  EXPECT_EQ(row(layer.parameter("weight").grad(), 1), sum_of(position(grad_y, 0, 1), position(grad_y, 0, 2)));
  const std::vector<NamedTensor> wrong{{"segments", whole_numbers({2, 4}, 3)}};
  EXPECT_NE(message_of<ShapeError>([&] { layer(Var(x), {.inputs = wrong}); }).find("the input segments is [2, 4]"),
            std::string::npos);
}

TEST(ClassToken, StandsInFrontOfTheOthers) {
  ClassToken layer({.width = 3});
  draw(layer, 1);
  const Tensor x = normal({2, 4, 3}, 2);
  const Var y = layer(Var(x), {});
  EXPECT_EQ(y.shape(), layer.output_shape({2, 4, 3}));
  EXPECT_EQ(position(y.value(), 1, 0), row(layer.parameter("weight").value(), 0));
  EXPECT_EQ(position(y.value(), 1, 4), position(x, 1, 3));
  const Tensor grad_y = normal({2, 5, 3}, 3);
  backward(y, grad_y);
  EXPECT_EQ(row(layer.parameter("weight").grad(), 0), sum_of(position(grad_y, 0, 0), position(grad_y, 1, 0)));
}

TEST(TokenPool, ReadsTheFirstPositionOrTheMean) {
  const Tensor x = normal({2, 4, 3}, 2);
  TokenPool first({.pool = "first"}), all({.pool = "mean"});
  EXPECT_EQ(first(Var(x), {}).shape(), first.output_shape({2, 4, 3}));
  EXPECT_EQ(row(first(Var(x), {}).value(), 1), position(x, 1, 0));
  const Tensor mean_of = all(Var(x), {}).value();
  double sum = 0;
  for (std::int64_t i = 0; i < 4; ++i) sum += position(x, 1, i)[2];
  EXPECT_NEAR(row(mean_of, 1)[2], sum / 4, 1e-6);
  EXPECT_THROW(first.output_shape({2, 0, 3}), ShapeError);
}

TEST(Patches, AreReadFromLeftToRightThenDown) {
  const auto layer = make_patches(2, 5, 3, 0.02);
  draw(*layer, 1);
  const Tensor x = normal({2, 6, 9, 2}, 2);
  const Tensor y = (*layer)(Var(x), {}).value();
  EXPECT_EQ(y.shape(), layer->output_shape({2, 6, 9, 2}));
  EXPECT_EQ(y.shape(), (Shape{2, 6, 5}));
  const Tensor& weight = layer->child("conv").parameter("weight").value();  // [5, 3, 3, 2]
  for (std::int64_t p = 0; p < 6; ++p) {
    const Tensor pixels = x.slice(0, 1, 2).slice(1, p / 3 * 3, p / 3 * 3 + 3).slice(2, p % 3 * 3, p % 3 * 3 + 3).contiguous();
    double sum = layer->child("conv").parameter("bias").value().data<float>()[4];
    for (std::int64_t i = 0; i < 18; ++i) sum += pixels.data<float>()[i] * weight.slice(0, 4, 5).contiguous().data<float>()[i];
    EXPECT_NEAR(position(y, 1, p)[4], sum, 1e-5);
  }
}

TEST(Tables, HaveTheirRoleAndInitialValues) {
  const Registry<Module> layers = builtin_layers();
  for (const char* json : {R"({"kind": "embedding", "config": {"vocabulary": 100, "width": 50}})",
                           R"({"kind": "positions", "config": {"length": 100, "width": 50}})",
                           R"({"kind": "segments", "config": {"types": 100, "width": 50}})",
                           R"({"kind": "class_token", "config": {"width": 5000}})"}) {
    SCOPED_TRACE(json);
    const Value tree = parse_json(json, "test");
    const auto layer = layers.build(tree.at("kind").as_string(), tree.at("config"));
    EXPECT_EQ(describe(*rebuild(describe(*layer), layers)), describe(*layer));
    EXPECT_EQ(layer->parameters().at(0)->role(), ParameterRole::embedding);
    initialize(*layer, 1);
    double squares = 0;
    for (const float v : layer->parameters()[0]->value().to_vector<float>()) squares += double{v} * v;
    EXPECT_NEAR(std::sqrt(squares / 5000), 0.02, 0.001);
  }
}

}  // namespace
}  // namespace tessera::testing
