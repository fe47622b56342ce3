#include "layers/decoding.h"

#include <gtest/gtest.h>

#include "layers/embedding.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/models/bert.h"
#include "layers/models/gpt.h"
#include "layers/models/vit.h"
#include "layers/self_attention.h"
#include "layers/sequential.h"

namespace tessera {
namespace {

TEST(Decoding, ANetworkThatReadsFromLeftToRightDecodes) {
  const models::Gpt form{.layers = 2, .width = 12, .heads = 3, .vocabulary = 7, .length = 8};
  EXPECT_EQ(why_not_decode(*form.build({1, 8})), "");
}

TEST(Decoding, OthersSayWhyNot) {
  const models::Bert bert{.layers = 2, .width = 12, .heads = 3, .vocabulary = 7, .length = 8};
  EXPECT_EQ(why_not_decode(*bert.build({1, 8})),
            "'blocks.0.attn.heads' is not causal, so that each position changes with those behind it");
  const models::Vit vit{.layers = 1, .width = 12, .heads = 3, .patch = 4};
  EXPECT_EQ(why_not_decode(*vit.build({1, 8, 8, 3}, 10)), "the network reads no tokens");
  Sequential bigrams;
  bigrams.add_child("tokens", std::make_unique<Embedding>(EmbeddingConfig{.vocabulary = 7, .width = 4}));
  bigrams.add_child("head", std::make_unique<Linear>(LinearConfig{.in = 4, .out = 7}));
  EXPECT_EQ(why_not_decode(bigrams), "the network has no attention");
}

TEST(Decoding, LayersThatJoinPositionsAnswerNotEach) {
  const auto network = [](std::int64_t features) {
    auto root = std::make_unique<Sequential>();
    root->add_child("tokens", std::make_unique<Embedding>(EmbeddingConfig{.vocabulary = 7, .width = 4}));
    root->add_child("qkv", std::make_unique<Linear>(LinearConfig{.in = 4, .out = 12}));
    root->add_child("heads", std::make_unique<SelfAttention>(SelfAttentionConfig{.heads = 2, .causal = true}));
    root->add_child("flatten", std::make_unique<Flatten>());
    root->add_child("head", std::make_unique<Linear>(LinearConfig{.in = features, .out = 7}));
    return root;
  };
  EXPECT_EQ(why_not_decode(*network(8 * 4)), "the network gives no answer for each position") << "of eight positions together";
  EXPECT_EQ(why_not_decode(*network(4)), "the network gives no answer for each position") << "of one position";
}

}  // namespace
}  // namespace tessera
