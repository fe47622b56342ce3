#include "layers/model_tree.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/builtin.h"
#include "layers/linear.h"
#include "layers/models/model.h"
#include "layers/residual.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

TEST(ModelTree, RebuildsEveryNamedModel) {
  const Registry<Module> layers = builtin_layers();
  for (const char* name : {"mlp", "lenet5", "resnet8", "resnet18", "vgg16", "mobilenet_v1"}) {
    SCOPED_TRACE(name);
    const auto model = build_model(named_model(name, 3), {1, 32, 32, 3});
    const Value tree = describe(*model);
    // Goes through text, as in a checkpoint's manifest.
    const auto again = rebuild(parse_json(to_json(tree), "test"), layers);
    EXPECT_EQ(describe(*again), tree);
    const auto before = named_parameters(*model);
    const auto after = named_parameters(*again);
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].path, after[i].path);
      EXPECT_EQ(before[i].parameter->value().shape(), after[i].parameter->value().shape());
    }
    EXPECT_EQ(again->output_shape({2, 32, 32, 3}), (Shape{2, 3}));
  }
}

TEST(ModelTree, EveryKindRebuildsFromItsOwnConfig) {
  const Registry<Module> layers = builtin_layers();
  for (const std::string_view kind : layers.names()) {
    SCOPED_TRACE(kind);
    const auto module = layers.build(kind, Value::map());
    EXPECT_EQ(module->kind(), kind);
    EXPECT_EQ(layers.build(kind, module->config())->config(), module->config());
  }
}

TEST(ModelTree, KeepsSettings) {
  Residual residual({.relu = true});
  residual.add_child("body", std::make_unique<Gelu>(GeluConfig{.form = "tanh"}));
  residual.add_child("shortcut", std::make_unique<Linear>(LinearConfig{.in = 3, .out = 3, .bias = false}));
  const auto again = rebuild(describe(residual), builtin_layers());
  EXPECT_EQ(again->config().at("relu"), Value(true));
  EXPECT_EQ(again->child("body").config().at("form"), Value("tanh"));
  EXPECT_TRUE(again->child("shortcut").parameters().size() == 1);
}

TEST(ModelTree, RefusesDamagedTrees) {
  const Registry<Module> layers = builtin_layers();
  for (const char* json :
       {R"({})", R"({"kind": "rleu", "config": {}, "children": []})", R"({"kind": "relu", "config": {}})",
        R"({"kind": "relu", "config": {"slope": 1}, "children": []})",
        R"({"kind": "conv2d", "config": {"in": 4, "out": 4, "groups": 3}, "children": []})",
        R"({"kind": "residual", "config": {}, "children": []})", R"({"kind": "basic_block", "config": {}, "children": []})",
        R"({"kind": "sequential", "config": {}, "children": [
                               {"name": "a.b", "kind": "relu", "config": {}, "children": []}]})"}) {
    EXPECT_THROW(rebuild(parse_json(json, "test"), layers), ConfigError) << json;
  }
}

TEST(ModelTree, NamesAChildThatIsMissing) {
  constexpr const char* kTree = R"({"kind": "residual", "config": {}, "children": []})";
  EXPECT_EQ(message_of<ConfigError>([&] { rebuild(parse_json(kTree, "test"), builtin_layers()); }),
            "model tree: residual has no child 'body', which it needs");
}

TEST(ModelTree, ChildrenThatAConfigMakesAreListedAsItMakesThem) {
  const auto message = [](const char* children) {
    const std::string json =
        str(R"({"kind": "svd_conv2d", "config": {"in": 3, "out": 3, "kernel": 1, "rank": 2, "batch_norm": true}, "children": [)",
            children, "]}");
    return message_of<ConfigError>([&] { rebuild(parse_json(json, "test"), builtin_layers()); });
  };
  EXPECT_EQ(message(""), "model tree: svd_conv2d has 0 children; its config makes 1");
  for (const char* other : {R"({"name": "norm1", "kind": "batch_norm", "config": {"channels": 2}, "children": []})",
                            R"({"name": "norm0", "kind": "batch_norm", "config": {"channels": 3}, "children": []})",
                            R"({"name": "norm0", "kind": "relu", "config": {}, "children": []})"}) {
    const std::string text = message(other);
    EXPECT_NE(text.find(R"( of svd_conv2d is not what its config makes: 'norm0', batch_norm {"channels":2)"), std::string::npos)
        << text;
  }
  constexpr const char* kNorm = R"({"name": "norm0", "kind": "batch_norm", "config": {"channels": 2}, "children": []})";
  EXPECT_EQ(message(str(kNorm, ", ", kNorm).c_str()), "module '': two children are named 'norm0'");
}

}  // namespace
}  // namespace tessera
