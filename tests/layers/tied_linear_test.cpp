#include "layers/tied_linear.h"

#include <gtest/gtest.h>

#include "core/config/read.h"
#include "layers/builtin.h"
#include "layers/embedding.h"
#include "layers/linear.h"
#include "layers/model_tree.h"
#include "layers/sequential.h"
#include "tests/layers/transformer_reference.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

// Tokens, then a head in its own Sequential: either tied, or a linear layer with a copy of the table.
std::unique_ptr<Sequential> network(bool tied) {
  auto root = std::make_unique<Sequential>();
  root->add_child("tokens", std::make_unique<Embedding>(EmbeddingConfig{.vocabulary = 7, .width = 5}));
  Module& head = root->add_child("head", std::make_unique<Sequential>());
  if (tied) {
    head.add_child("output", std::make_unique<TiedLinear>(TiedLinearConfig{.in = 5, .out = 7, .bias = true}));
  } else {
    head.add_child("output", std::make_unique<Linear>(LinearConfig{.in = 5, .out = 7}));
  }
  draw(*root, 3);
  if (!tied) find_module(*root, "head.output").parameter("weight").set_value(root->child("tokens").parameter("weight").value());
  return root;
}

TEST(TiedLinear, ReadsTheTableAndGivesItBothGradients) {
  const auto tied = network(true), untied = network(false);
  const Var ids(whole_numbers({2, 4}, 7));
  const Tensor grad_y = normal({2, 4, 7}, 2);
  const Var y = (*tied)(ids, {}), want = (*untied)(ids, {});
  EXPECT_EQ(y.value().to_vector<float>(), want.value().to_vector<float>());
  EXPECT_EQ(tied->output_shape({2, 4}), y.shape());
  backward(y, grad_y);
  backward(want, grad_y);
  const Tensor both = add(Var(untied->child("tokens").parameter("weight").grad()),
                          Var(find_module(*untied, "head.output").parameter("weight").grad()))
                          .value();
  EXPECT_LE(relative_error(tied->child("tokens").parameter("weight").grad(), both), 1e-6);
  EXPECT_EQ(find_module(*tied, "head.output").parameter("bias").grad().to_vector<float>(),
            find_module(*untied, "head.output").parameter("bias").grad().to_vector<float>());
}

TEST(TiedLinear, TheTableIsOneParameter) {
  const auto tied = network(true);
  std::vector<std::string> paths;
  for (const NamedParameter& entry : named_parameters(*tied)) paths.push_back(entry.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"tokens.weight", "head.output.bias"}));
  const Cost cost = total_cost(*tied, {2, 4});
  EXPECT_EQ(cost.parameters, 35 + 7);
  EXPECT_EQ(cost.macs, 4 * 35);
}

TEST(TiedLinear, FindsTheTableOfTheNetworkThatItIsIn) {
  const auto tied = network(true);
  const std::unique_ptr<Module> copy = rebuild(describe(*tied), builtin_layers());
  EXPECT_EQ(describe(*copy), describe(*tied));
  const auto& head = dynamic_cast<const TiedLinear&>(find_module(*copy, "head.output"));
  EXPECT_EQ(&head.table(), &copy->child("tokens"));
  Sequential whole;
  whole.add_child("teacher", network(true));
  const auto& inner = dynamic_cast<const TiedLinear&>(find_module(whole, "teacher.head.output"));
  EXPECT_EQ(inner.table().path(), "teacher.tokens");
  EXPECT_EQ(why_shared(inner), "shares its table with 'teacher.tokens'");
  EXPECT_EQ(why_shared(inner.table()), "shares its table with 'teacher.head.output'");
  EXPECT_EQ(why_shared(whole), "");
  EXPECT_EQ(why_shared(network(false)->child("tokens")), "");
}

TEST(TiedLinear, RefusesANetworkWithoutItsTable) {
  TiedLinear alone({.in = 5, .out = 7});
  const Var x(normal({1, 5}, 1));
  EXPECT_EQ(message_of<ConfigError>([&] { alone(x, {}); }),
            "tied_linear '': there is no module 'tokens' whose table it could read");
  Sequential root;
  root.add_child("tokens", std::make_unique<Embedding>(EmbeddingConfig{.vocabulary = 8, .width = 5}));
  root.add_child("head", std::make_unique<TiedLinear>(TiedLinearConfig{.in = 5, .out = 7}));
  const std::string unfit =
      "tied_linear 'head': 'tokens' is embedding {\"vocabulary\":8,\"width\":5}; needs an embedding of 7 x 5";
  EXPECT_EQ(message_of<ConfigError>([&] { root.child("head")(x, {}); }), unfit);
  EXPECT_EQ(message_of<ConfigError>([&] { rebuild(describe(root), builtin_layers()); }), unfit) << "before the first forward";
  EXPECT_EQ(message_of<ConfigError>([&] { rebuild(describe(alone), builtin_layers()); }),
            "tied_linear '': there is no module 'tokens' whose table it could read");
  const auto gone = root.replace_child("head", std::make_unique<Linear>(LinearConfig{.in = 5, .out = 7}));
  EXPECT_EQ(gone->parent(), nullptr);
  EXPECT_EQ(root.child("head").parent(), &root);
  EXPECT_EQ(message_of<ShapeError>([&] { gone->output_shape({1, 4}); }), "tied_linear '': input is [1, 4]; needs [..., 5]");
}

}  // namespace
}  // namespace tessera::testing
