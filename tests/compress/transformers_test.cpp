// Passes on transformers, whose layers read sequences [n, t, features] and whose token table is shared.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compress/factorise.h"
#include "compress/pass_runner.h"
#include "compress/patterns/builtin.h"
#include "compress/prune/prune.h"
#include "compress/sparsify.h"
#include "compress/timing/compare.h"
#include "compress/timing/latency.h"
#include "core/autograd/backward.h"
#include "core/config/read.h"
#include "layers/builtin.h"
#include "layers/compressed.h"
#include "layers/decoding.h"
#include "layers/linear.h"
#include "layers/model_tree.h"
#include "layers/models/bert.h"
#include "layers/models/gpt.h"
#include "layers/models/vit.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/layers/transformer_reference.h"
#include "tests/support/message_of.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

constexpr double kTolerance = 1e-4;  // gradients in f32, through two blocks

const Shape kTokens{2, 5};

std::unique_ptr<Module> network(bool tied = true) {
  const models::Gpt form{.layers = 2, .width = 32, .heads = 4, .hidden = 64, .vocabulary = 19, .length = 8, .tied = tied};
  auto gpt = form.build(kTokens);
  draw(*gpt, 3);
  return gpt;
}

Var ids() { return Var(whole_numbers(kTokens, 19)); }

PassReport factorise(std::unique_ptr<Module>& root, const std::string& json) {
  FactorisePass pass(read<FactoriseConfig>(parse_json(json, "test")));
  return run_pass(root, pass, kTokens);
}

// The outputs and the gradients of the parameters that both networks have are equal.
void expect_same(Module& got, Module& want) {
  const Var y = got(ids(), {}), exact = want(ids(), {});
  EXPECT_LE(relative_error(y.value(), exact.value()), kTolerance);
  const Tensor grad_y = random_tensor(y.shape(), DType::f32, 5);
  backward(y, grad_y);
  backward(exact, grad_y);
  std::size_t compared = 0;
  for (const NamedParameter& entry : named_parameters(want)) {
    const Module& owner = find_module(got, entry.path.substr(0, entry.path.rfind('.')));
    if (as_compressed(owner) != nullptr) continue;
    EXPECT_LE(relative_error(owner.parameter(entry.parameter->name()).grad(), entry.parameter->grad()), kTolerance) << entry.path;
    ++compared;
  }
  EXPECT_GE(compared, 16U);
  for (const NamedParameter& entry : named_parameters(got)) {
    EXPECT_TRUE(entry.parameter->grad().defined()) << entry.path;
    entry.parameter->zero_grad();
  }
}

// Decoding position by position, with earlier positions cached, equals the forward pass of all positions to `tolerance`.
void expect_decodes(Module& root, double tolerance = kTolerance) {
  const Tensor ids = whole_numbers({2, 7}, 19);
  const NoGrad no_grad;
  const Tensor whole = root(Var(ids), {}).value();
  AttentionCache cache(7);
  for (std::int64_t i = 0; i < 7; ++i) {
    const Tensor y = root(Var(ids.slice(1, i, i + 1)), {.cache = &cache}).value();
    cache.advance(1);
    EXPECT_LE(relative_error(y, whole.slice(1, i, i + 1)), tolerance) << i;
  }
}

// The network with the dense equivalents of its compressed layers.
std::unique_ptr<Module> made_dense(Module& root, bool tied = true) {
  std::unique_ptr<Module> dense = network(tied);
  for_each_module(root, [&](const Module& module) {
    if (const CompressedLayer* const layer = as_compressed(module)) replace_module(dense, module.path(), layer->to_dense());
  });
  return dense;
}

TEST(CompressedTransformers, FactoredLayersTakeSequences) {
  for (const char* format : {"svd", "tt"}) {
    for (const char* layers : {"blocks.*.mlp.*", "blocks.*.attn.*"}) {
      SCOPED_TRACE(str(format, ' ', layers));
      auto root = network();
      const PassReport report =
          factorise(root, str(R"({"layers": ")", layers, R"(", "format": ")", format, R"(", "ranks": {"params": 0.5}})"));
      EXPECT_EQ(report.layers.size(), 4U);
      for (const LayerReport& row : report.layers) EXPECT_EQ(row.decision, "factored") << row.path << ": " << row.reason;
      EXPECT_LT(report.after.parameters, report.before.parameters);
      EXPECT_EQ(describe(*rebuild(describe(*root), builtin_layers())), describe(*root));
      expect_same(*root, *made_dense(*root));
      expect_decodes(*root);
    }
  }
}

TEST(CompressedTransformers, EverySparsePatternTakesSequences) {
  for (const std::string_view name : pattern_names()) {
    SCOPED_TRACE(name);
    auto root = network();
    PruneConfig config;
    config.layers = parse_json(R"(["blocks.*.mlp.*", "blocks.*.attn.qkv"])", "test");
    config.pattern.pattern = name;
    if (name == "block") config.pattern.block = Extent{4, 8};
    if (name.starts_with("tile")) config.pattern.group = 8;
    config.sparsity.target = 0.5;
    prune_to_target(config, *root);
    const std::vector<PrunedWeight> weights = pruned_weights_or_throw(config, *root);
    EXPECT_EQ(weights.size(), 6U);
    for (const PrunedWeight& weight : weights) EXPECT_LT(weight.kept(), weight.numel());
    SparsifyPass pass(SparsifyConfig{});
    const PassReport report = run_pass(root, pass, kTokens);
    EXPECT_EQ(report.layers.size(), 6U);
    for (const LayerReport& row : report.layers) EXPECT_EQ(row.decision, "sparse") << row.path << ": " << row.reason;
    expect_same(*root, *made_dense(*root));
    expect_decodes(*root);
  }
}

TEST(CompressedTransformers, ATableThatIsSharedStays) {
  for (const char* layer : {"head", "tokens"}) {
    auto root = network();
    const std::string other = layer == std::string("head") ? "tokens" : "head";
    for (const auto& [form, kinds] : {std::pair(R"("svd", "ranks": {"rank": 2})", "conv2d or linear"),
                                      std::pair(R"("tt", "ranks": {"r1": 2})", "conv2d, linear or embedding")}) {
      const std::string refused =
          message_of<ConfigError>([&] { factorise(root, str(R"({"layers": ")", layer, R"(", "format": )", form, "}")); });
      EXPECT_NE(refused.find(str("match no ", kinds, "; matched: ", layer, "; '", layer, "' shares its table with '", other,
                                 "', which stays as it is")),
                std::string::npos)
          << refused;
    }
    const std::string kept = message_of<ConfigError>([&] {
      const PruneConfig config =
          read<PruneConfig>(parse_json(str(R"({"layers": ")", layer, R"(", "sparsity": {"target": 0.5}})"), "test"));
      pruned_weights_or_throw(config, *root);
    });
    EXPECT_NE(kept.find(str("; '", layer, "' shares its table with '", other, "', which stays as it is")), std::string::npos)
        << kept;
    EXPECT_EQ(root->child("head").kind(), "tied_linear");
  }
  const PruneConfig several = read<PruneConfig>(parse_json(R"({"layers": ["*", "haed"], "sparsity": {"target": 0.5}})", "test"));
  const PruneConfig first =
      read<PruneConfig>(parse_json(R"({"layers": ["tokens", "haed"], "sparsity": {"target": 0.5}})", "test"));
  auto tied = network();
  const auto refusal = [&](const PruneConfig& config) {
    return message_of<ConfigError>([&] { pruned_weights_or_throw(config, *tied); });
  };
  EXPECT_NE(refusal(several).find("selector 'haed' matches no layer"), std::string::npos) << refusal(several);
  EXPECT_EQ(refusal(several).find("shares its table"), std::string::npos) << refusal(several);
  EXPECT_NE(refusal(first).find("'tokens' shares its table with 'head'"), std::string::npos) << refusal(first);
  auto untied = network(false);
  EXPECT_EQ(factorise(untied, R"({"layers": "head", "format": "svd", "ranks": {"rank": 2}})").layers.size(), 1U);
  EXPECT_EQ(untied->child("head").kind(), "svd_linear");
}

TEST(CompressedTransformers, ATableOfItsOwnIsATrain) {
  for (const char* ranks : {R"({"params": 0.6})", R"({"energy": 0.5})", R"({"r1": 3})"}) {
    SCOPED_TRACE(ranks);
    auto root = network(false);
    const PassReport report = factorise(root, str(R"({"layers": "tokens", "format": "tt", "ranks": )", ranks, "}"));
    ASSERT_EQ(report.layers.size(), 1U);
    const LayerReport& row = report.layers[0];
    EXPECT_EQ(row.decision, "factored") << row.reason;
    EXPECT_EQ(row.kind_after, "tt_embedding");
    EXPECT_LT(row.parameters_after, row.parameters_before);
    EXPECT_EQ(row.macs_before, 0);
    EXPECT_GT(row.macs_after, 0) << "of the products of slices";
    EXPECT_EQ(describe(*rebuild(describe(*root), builtin_layers())), describe(*root));
    expect_same(*root, *made_dense(*root, false));
  }
  auto root = network(false);
  EXPECT_EQ(factorise(root, R"({"layers": "tokens", "format": "tt", "ranks": {"energy": 1.0}})").layers.at(0).reason,
            "factored parameters 896 at ranks r1 16 are not below dense 608");
}

// Patterns select only matrix products. A look-up table is selected only by its exact path.
TEST(CompressedTransformers, ATableIsSelectedByItsPathAlone) {
  const auto paths = [](const char* layers) {
    auto root = network(false);
    std::vector<std::string> selected;
    for (const LayerReport& row :
         factorise(root, str(R"({"layers": )", layers, R"(, "format": "tt", "ranks": {"r1": 2}})")).layers) {
      selected.push_back(row.path);
    }
    return selected;
  };
  const std::vector<std::string> all = paths(R"("*")");
  EXPECT_EQ(all.size(), 9U) << "four in each block, and the head";
  EXPECT_EQ(std::ranges::find(all, "tokens"), all.end());
  EXPECT_EQ(paths(R"(["*", "tokens"])").size(), 10U);
  EXPECT_EQ(paths(R"(["tokens", "*.fc1"])"), (std::vector<std::string>{"tokens", "blocks.0.mlp.fc1", "blocks.1.mlp.fc1"}));
  auto root = network(false);
  const std::string refused =
      message_of<ConfigError>([&] { factorise(root, R"({"layers": "tok*", "format": "tt", "ranks": {"r1": 2}})"); });
  EXPECT_NE(refused.find("match no conv2d, linear or embedding; matched: tokens; 'tokens' is a table, which its whole path alone "
                         "selects"),
            std::string::npos)
      << refused;
}

TEST(CompressedTransformers, RanksOfATableAreNotAskedForByItsMacs) {
  const auto fault = [](const char* rest) {
    auto root = network(false);
    return message_of<ConfigError>([&] { factorise(root, str(R"({"format": "tt", )", rest, "}")); });
  };
  const std::string rule =
      "layer 'tokens': tt lowers the MACs of no embedding; ask for params, energy, error, vbmf or explicit ranks";
  EXPECT_NE(fault(R"("layers": ["tokens", "*.fc1"], "ranks": {"macs": 0.5})").find(rule), std::string::npos);
  EXPECT_NE(fault(R"("layers": "tokens", "ranks": {"latency": {"speedup": 2}})").find(rule), std::string::npos);
  EXPECT_EQ(fault(R"("layers": ["tokens", "*.fc1"], "ranks": [{"layers": "*.fc1", "macs": 0.5}, {"layers": "tokens", "r1": 2}])"),
            "");
  EXPECT_EQ(fault(R"("layers": ["tokens", "*.fc1"], "ranks": {"params": 0.5})"), "");
}

// A look-up table has no MACs before compression, so that no fraction of them can be kept.
TEST(CompressedTransformers, APlanComparesRulesThatATableTakes) {
  auto root = network(false);
  const auto rules_of = [&](const char* layers) {
    FactorisePass pass(read<FactoriseConfig>(
        parse_json(str(R"({"layers": )", layers, R"(, "format": "tt", "ranks": {"params": 0.6}})"), "test")));
    EXPECT_TRUE(pass.try_prepare(root, kTokens).empty());
    std::vector<std::string> rules;
    for (const RuleChoice& rule : pass.compare_rules().rules) {
      EXPECT_TRUE(std::isfinite(rule.macs_kept)) << rule.rule;
      rules.push_back(rule.rule);
    }
    return rules;
  };
  const std::vector<std::string> without_macs{"params 0.5 per matched", "energy 0.9", "error 0.3", "vbmf 1"};
  EXPECT_EQ(rules_of(R"("tokens")"), without_macs);
  EXPECT_EQ(rules_of(R"(["*.fc1", "tokens"])"), without_macs);
  EXPECT_EQ(rules_of(R"("*.fc1")").size(), 5U);
}

TEST(CompressedTransformers, ATrainOfTokensDecodesAndIsTimed) {
  auto root = network(false);
  factorise(root, R"({"layers": "tokens", "format": "tt", "ranks": {"r1": 3}})");
  EXPECT_EQ(root->input_limit(), 19);
  EXPECT_EQ(why_not_decode(*root), "");
  expect_decodes(*root, 1e-5);
  Module& tokens = root->child("tokens");
  const std::unique_ptr<Module> dense = as_compressed(tokens)->to_dense();
  for (const DType compute : {DType::f32, DType::bf16}) {
    for (const Phase phase : {Phase::inference, Phase::decode, Phase::training}) {
      const PairedTimes times = time_layer(*dense, tokens, kTokens, /*input_gradient=*/false,
                                           {.phase = phase, .compute = compute, .sampling = Sampling::told_in(2)});
      EXPECT_EQ(times.dense.size(), 2U);
      EXPECT_EQ(times.compressed.size(), 2U);
    }
  }
}

// Without a choice of layers all are pruned except the head. A tied network has no separate weights for it.
TEST(CompressedTransformers, OnlyAHeadIsLeftOut) {
  const PruneConfig config = read<PruneConfig>(parse_json(R"({"sparsity": {"target": 0.5}})", "test"));
  for (const bool tied : {true, false}) {
    const auto root = network(tied);
    const std::vector<PrunedWeight> weights = pruned_weights_or_throw(config, *root);
    ASSERT_EQ(weights.size(), 8U);
    EXPECT_EQ(weights.front().path, "blocks.0.attn.qkv.weight");
    EXPECT_EQ(weights.back().path, "blocks.1.mlp.fc2.weight");
  }
  const auto behind = network();
  behind->add_child("probe", std::make_unique<Linear>(LinearConfig{.in = 19, .out = 4}));
  EXPECT_EQ(left_out(config, *behind), (std::vector<std::string>{"probe is the last linear layer"}));
}

// An identity layer that records its input.
class Seen final : public Module {
 public:
  std::string_view kind() const override { return "seen"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context& context) override {
    runs.push_back({x.dtype(), context.training, context.cache != nullptr, x.shape()[1]});
    return x;
  }
  Shape output_shape(const Shape& input, Trace* trace) const override {
    trace_leaf(trace, input, input, 0);
    return input;
  }

  struct Run {
    DType dtype;
    bool training, cached;
    std::int64_t positions;
    bool operator==(const Run&) const = default;
  };
  static inline std::vector<Run> runs = {};
};

TEST(CompressedTransformers, AreTimedInThePhaseAndThePrecisionOfTheRun) {
  auto root = network();
  replace_module(root, "blocks.1.mlp.act", std::make_unique<Seen>());
  for (const DType compute : {DType::f32, DType::bf16}) {
    for (const Phase phase : {Phase::inference, Phase::decode, Phase::training}) {
      SCOPED_TRACE(str(name_of(compute), ' ', name_of(phase)));
      const TimedWork work(*root, kTokens, {.phase = phase, .compute = compute});
      const Untouched state(*root);
      Seen::runs.clear();
      work.run(*root);
      ASSERT_FALSE(Seen::runs.empty());
      const bool decodes = phase == Phase::decode;
      EXPECT_EQ(Seen::runs.back(), (Seen::Run{compute, phase == Phase::training, decodes, decodes ? 1 : kTokens[1]}));
    }
  }
}

// Each network has a separate cache.
TEST(CompressedTransformers, NetworksOfOtherKeysAndValuesDecodeInTurn) {
  const auto gpt = [](std::int64_t kv_heads) {
    const models::Gpt form{
        .layers = 2, .width = 32, .heads = 4, .kv_heads = kv_heads, .vocabulary = 19, .positions = "rotary", .tied = false};
    auto network = form.build(kTokens);
    draw(*network, 3);
    return network;
  };
  const auto many = gpt(4), few = gpt(1);
  Module* networks[] = {many.get(), few.get()};
  const PairedTiming timing = time_networks(networks, {2, 7}, 5, {.phase = Phase::decode});
  ASSERT_EQ(timing.networks.size(), 2U);
  for (const Summary& time : timing.networks) EXPECT_GT(time.median, 0);
  EXPECT_EQ(message_of<ShapeError>([&] { TimedWork(*many, {3}, {.phase = Phase::decode}); }),
            "decode: input is [3]; needs [n, positions, ...]");
}

}  // namespace
}  // namespace tessera::testing
