// Dropout in a transformer: after the embeddings, in attention, and after both branches of a block.
#include <gtest/gtest.h>

#include "core/autograd/var.h"
#include "core/device/step_state.h"
#include "layers/activation.h"
#include "layers/models/gpt.h"
#include "layers/self_attention.h"
#include "tests/layers/transformer_reference.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

// Each place drops something by itself. Without all of them training computes the same as evaluation.
TEST(TransformerDropout, EveryPlaceDrops) {
  const models::Gpt config{.layers = 2, .width = 12, .heads = 3, .vocabulary = 11, .length = 9, .dropout = 0.3};
  const Tensor ids = whole_numbers({2, 7}, 11);
  const auto change_with = [&](std::string_view place) {
    std::unique_ptr<Module> gpt = config.build({1, 9});
    draw(*gpt, 3);
    std::vector<std::string> dropped, heads;
    for_each_module(*gpt, [&](const Module& module) {
      if (module.path() == place) return;
      if (module.kind() == "dropout") dropped.push_back(module.path());
      if (module.kind() == "self_attention") heads.push_back(module.path());
    });
    EXPECT_EQ(dropped.size() + heads.size(), place.empty() ? 7U : 6U) << "three in each of two blocks, and the embedding's";
    for (const std::string& path : dropped) replace_module(gpt, path, std::make_unique<Identity>());
    for (const std::string& path : heads) {
      replace_module(gpt, path, std::make_unique<SelfAttention>(SelfAttentionConfig{.heads = 3, .causal = true}));
    }
    StepState step;
    const NoGrad no_grad;
    const Tensor trained = (*gpt)(Var(ids), {.training = true, .seed = 1, .step = &step}).value();
    return relative_error(trained, (*gpt)(Var(ids), {}).value());
  };
  EXPECT_EQ(change_with(""), 0);
  for (const char* place : {"dropout", "blocks.0.attn.heads", "blocks.0.attn.dropout", "blocks.1.mlp.dropout"}) {
    EXPECT_GT(change_with(place), 1e-3) << place;
  }
}

}  // namespace
}  // namespace tessera::testing
