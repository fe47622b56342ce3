// What a `prune` block may and may not say of its pattern.
#include "compress/prune/config.h"

#include <gtest/gtest.h>

#include "core/config/read.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

PruneConfig block(const std::string& json) { return read<PruneConfig>(parse_json(json, "prune"), "prune"); }

void refused(const std::string& json, const std::string& message) {
  const std::string found = message_of<ConfigError>([&] { block(json); });
  EXPECT_NE(found.find(message), std::string::npos) << json << ": " << found;
}

TEST(PruneBlock, ReadsAPatternAndItsParameters) {
  const PruneConfig blocks = block(R"({"pattern": "block", "block": [8, 4], "sparsity": {"target": 0.5}})");
  EXPECT_EQ(blocks.pattern.pattern, "block");
  EXPECT_EQ(blocks.pattern.block, (Extent{8, 4}));
  EXPECT_EQ(block(R"({"pattern": "tile", "group": 32, "sparsity": {"target": 0.5}})").pattern.group, 32);
  EXPECT_EQ(block(R"({"pattern": "tile_element", "extra": 0.1, "sparsity": {"target": 0.5}})").pattern.extra, 0.1);
  EXPECT_EQ(block(R"({"sparsity": {"target": 0.5}})").pattern.pattern, "unstructured");
  const Value again = write(blocks);
  EXPECT_EQ(write(read<PruneConfig>(again, "prune")), again);
}

TEST(PruneBlock, OnlyChannelsAreCoupled) {
  EXPECT_TRUE(*block(R"({"pattern": "channel", "coupled": true, "sparsity": {"target": 0.5}})").pattern.coupled);
  refused(R"({"pattern": "tile", "coupled": true, "sparsity": {"target": 0.5}})",
          "prune.coupled: has no effect with pattern: tile");
}

TEST(PruneBlock, NOfMHasASparsityOfItsOwn) {
  const PruneConfig alone = block(R"({"pattern": "n_m", "n_m": "1:4"})");
  EXPECT_EQ(alone.sparsity.target, 0.75);
  EXPECT_EQ(alone.sparsity.schedule, "one_shot");
  EXPECT_EQ(block(R"({"pattern": "n_m"})").sparsity.target, 0.5) << "2:4";
  EXPECT_EQ(block(R"({"pattern": "n_m", "sparsity": {"target": 0.5, "begin": "1e"}})").sparsity.begin, Duration::epochs(1));
  EXPECT_EQ(write(block(to_json(write(alone)))), write(alone)) << "the resolved block is legal";
  refused(R"({"pattern": "n_m", "sparsity": {"target": 0.75}})",
          "prune.sparsity.target: is 0.75; pattern: n_m has 0.5, whatever is asked");
  refused(R"({"pattern": "n_m", "sparsity": {"schedule": "cubic"}})",
          "prune.sparsity.schedule: is cubic; pattern: n_m is one_shot, for its sparsity cannot rise");
  refused(R"({"pattern": "n_m", "sparsity": {"end": "3e"}})", "prune.sparsity.end: has no effect with schedule: one_shot");
  refused(R"({"pattern": "n_m", "scope": "erk"})", "prune.scope: has no effect with pattern: n_m");
  refused(R"({"pattern": "n_m", "n_m": "2-4"})", "prune.n_m: is 2-4; needs N:M with 0 < N < M, such as 2:4");
  refused(R"({"pattern": "tile"})", "sparsity: required key is missing");
  refused(R"({"pattern": "tile", "sparsity": {}})", "sparsity.target: required key is missing");
}

TEST(PruneBlock, RefusesParametersOfOtherPatterns) {
  refused(R"({"block": [8, 8], "sparsity": {"target": 0.5}})", "prune.block: has no effect with pattern: unstructured");
  refused(R"({"pattern": "tile", "n_m": "2:4", "sparsity": {"target": 0.5}})", "prune.n_m: has no effect with pattern: tile");
  refused(R"({"pattern": "block", "group": 8, "sparsity": {"target": 0.5}})", "prune.group: has no effect with pattern: block");
  refused(R"({"pattern": "tile", "extra": 0.1, "sparsity": {"target": 0.5}})", "prune.extra: has no effect with pattern: tile");
  refused(R"({"pattern": "tile_element", "sparsity": {"target": 0.96}})",
          "prune.extra: 0.05 of all weights as single elements leave no tile with sparsity.target 0.96");
}

TEST(PruneBlock, BatchesAreOfScoreTaylor) {
  EXPECT_EQ(block(R"({"score": "taylor", "sparsity": {"target": 0.5}})").score_batches_or_default(), 8);
  EXPECT_EQ(block(R"({"score": "taylor", "score_batches": 2, "sparsity": {"target": 0.5}})").score_batches_or_default(), 2);
  refused(R"({"score_batches": 2, "sparsity": {"target": 0.5}})", "prune.score_batches: has no effect with score: magnitude");
}

TEST(PruneBlock, SrSteIsOfNOfM) {
  const PruneConfig read_back = block(R"({"pattern": "n_m", "sr_ste": {"freeze": "4e"}})");
  ASSERT_TRUE(read_back.sr_ste);
  EXPECT_EQ(read_back.sr_ste->lambda, 2e-4);
  EXPECT_EQ(read_back.sr_ste->freeze, Duration::epochs(4));
  EXPECT_EQ(write(block(to_json(write(read_back)))), write(read_back));
  refused(R"({"sr_ste": {}, "sparsity": {"target": 0.5}})", "prune.sr_ste: needs pattern: n_m; pattern: unstructured");
  refused(R"({"pattern": "n_m", "sr_ste": {}, "score": "random"})", "prune.score: is random; sr_ste keeps weights by magnitude");
  refused(R"({"pattern": "n_m", "sr_ste": {}, "sparsity": {"begin": "1e"}})", "prune.sparsity.begin: has no effect with sr_ste");
}

TEST(PruneBlock, TargetsOfSomeLayersNeedScopeLayer) {
  const std::string rules = R"("sparsity": {"target": 0.5, "targets": [{"layers": "a*", "target": 0.96}]})";
  const PruneConfig read_back = block("{" + rules + "}");
  ASSERT_EQ(read_back.sparsity.targets.size(), 1u);
  EXPECT_EQ(read_back.sparsity.targets[0].target, 0.96);
  EXPECT_EQ(write(block(to_json(write(read_back)))), write(read_back));
  refused(str("{\"scope\": \"erk\", ", rules, "}"),
          "prune.sparsity.targets: needs scope: layer; scope: erk has one target for all layers together");
  refused(str("{\"pattern\": \"tile_element\", ", rules, "}"), "leave no tile with a target of 0.96");
  refused(R"({"pattern": "n_m", "sparsity": {"targets": [{"layers": "a", "target": 0.5}]}})",
          "prune.sparsity.targets: has no effect with pattern: n_m");
  refused(R"({"sparsity": {"target": 0.5, "targets": [{"layers": "a", "target": 1}]}})", "targets[0].target: is 1");
}

}  // namespace
}  // namespace tessera::testing
