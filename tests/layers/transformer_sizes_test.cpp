// Parameters and multiply-adds of named transformers against the published ones.
#include <gtest/gtest.h>

#include "layers/models/model.h"
#include "layers/models/vit.h"

namespace tessera::testing {
namespace {

std::unique_ptr<Module> named(std::string_view name, const Shape& input, std::optional<std::int64_t> classes = {}) {
  return build_model(named_model(name, classes), input);
}

std::int64_t parameters_below(Module& root, std::string_view path) {
  std::int64_t count = 0;
  for (const NamedParameter& entry : named_parameters(root)) {
    if (entry.path.starts_with(path)) count += entry.parameter->value().numel();
  }
  return count;
}

TEST(TransformerSizes, Gpt2HasThePublishedParameters) {
  const auto gpt = named("gpt2", {1, 1024});
  EXPECT_EQ(total_cost(*gpt, {1, 1024}).parameters, 124439808);
  EXPECT_EQ(parameters_below(*gpt, ""), 124439808);
}

// bert-base-uncased has 109,482,240 parameters with its pooler, a linear layer of 768 x 768 with bias that answers about whole
// texts and is not in this network. With the head that predicts masked tokens, and without the pooler, it has 109,514,298.
TEST(TransformerSizes, BertBaseHasThePublishedParameters) {
  const auto bert = named("bert_base", {1, 512});
  EXPECT_EQ(parameters_below(*bert, ""), 109514298);
  const std::int64_t encoder = parameters_below(*bert, "") - parameters_below(*bert, "head");
  EXPECT_EQ(encoder, 108891648);
  EXPECT_EQ(encoder + 768 * 768 + 768, 109482240);
  EXPECT_EQ(total_cost(*bert, {1, 512}).parameters, 109514298);
}

TEST(TransformerSizes, VitTiHasThePublishedParameters) {
  const auto vit = named("vit_ti16", {1, 224, 224, 3}, 1000);
  const Cost cost = total_cost(*vit, {1, 224, 224, 3});
  EXPECT_EQ(cost.parameters, 5717416);
  // 197 positions in 12 blocks, each with 12 width^2 weights and two products of 197 x 197; then the patches and the head.
  EXPECT_EQ(cost.macs, 12 * (197 * 12 * 192 * 192 + 2 * 197 * 197 * 192) + 196 * 768 * 192 + 192 * 1000);
}

// The network for small images in docs/transformers.md: 64 patches of 4 x 4 x 3 and a class token.
TEST(TransformerSizes, AVitForImagesOf32By32HasTheParametersOfItsParts) {
  models::Vit form{.layers = 4, .width = 128, .heads = 4, .patch = 4};
  const auto vit = form.build({1, 32, 32, 3}, 10);
  const std::int64_t width = 128, block = 2 * 2 * width + 12 * width * width + (3 + 1 + 4 + 1) * width;
  const std::int64_t parameters = 48 * width + width + width + 65 * width + 4 * block + 2 * width + 10 * width + 10;
  EXPECT_EQ(parameters, 809354);
  const Cost cost = total_cost(*vit, {1, 32, 32, 3});
  EXPECT_EQ(cost.parameters, parameters);
  EXPECT_EQ(cost.macs, 4 * (65 * 12 * width * width + 2 * 65 * 65 * width) + 64 * 48 * width + width * 10);
}

}  // namespace
}  // namespace tessera::testing
