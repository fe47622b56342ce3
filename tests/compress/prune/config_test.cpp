// What a `prune` block says of its pattern, and what it must not.
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
  refused(R"({"pattern": "n_m", "n_m": "2-4"})", "prune.n_m: needs N:M with 0 < N < M, such as 2:4");
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

}  // namespace
}  // namespace tessera::testing
