#include <gtest/gtest.h>

#include <algorithm>

#include "core/config/range_text.h"
#include "core/support/error.h"
#include "tests/core/config/blocks.h"

namespace tessera {
namespace {

using namespace test;

SchemaEntry entry(const std::string& path) {
  const std::vector<SchemaEntry> entries = schema<Experiment>();
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const SchemaEntry& each) { return each.path == path; });
  if (found == entries.end()) {
    ADD_FAILURE() << "no key " << path;
    return {};
  }
  return *found;
}

TEST(Schema, ListsEveryKeyOnce) {
  std::vector<std::string> paths;
  for (const SchemaEntry& each : schema<Experiment>()) paths.push_back(each.path);
  EXPECT_EQ(paths, (std::vector<std::string>{
                       "seed", "precision", "crop", "mean", "devices", "optimizer", "optimizer.name", "optimizer(sgd).lr",
                       "optimizer(sgd).momentum", "optimizer(sgd).nesterov", "optimizer(adamw).lr", "optimizer(adamw).beta1",
                       "optimizer.clip", "stages", "stages[].name", "stages[].train", "stages[].admm", "stages[].admm.layers",
                       "stages[].admm.ranks", "stages[].admm.rho", "extra"}));
}

TEST(Schema, GivesTypesAndDefaults) {
  EXPECT_EQ(entry("seed").type, "integer");
  EXPECT_EQ(entry("seed").default_value, "1");
  EXPECT_EQ(entry("precision").type, "text");
  EXPECT_EQ(entry("precision").default_value, "f32");
  EXPECT_EQ(entry("devices").default_value, "[\"cpu\"]");
  EXPECT_EQ(entry("crop").type, "integer or [height, width]");
  EXPECT_EQ(entry("optimizer").type, "block");
  EXPECT_EQ(entry("optimizer(adamw).lr").default_value, "0.001");
  EXPECT_EQ(entry("optimizer.clip").default_value, "none");
  EXPECT_EQ(entry("stages").type, "list of blocks");
  EXPECT_EQ(entry("stages[].name").default_value, "");
  EXPECT_EQ(entry("stages[].train").type, "duration");
  EXPECT_EQ(entry("stages[].train").default_value, "1e");
  EXPECT_EQ(entry("stages[].admm").default_value, "none");
  EXPECT_EQ(entry("stages[].admm.ranks").default_value, "[8]");
}

struct Forms {
  Sgd one;
  std::vector<Stage> list;
  void fields(Fields& f) { f.add_one_or_list("form", one, list, {}); }
};

TEST(Schema, ABlockOrAListIsOneKeyWithBothSetsOfKeys) {
  std::vector<std::string> lines;
  for (const SchemaEntry& each : schema<Forms>()) lines.push_back(each.path + ": " + each.type);
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines[0], "form: block or list of blocks");
  EXPECT_EQ(lines[1], "form.lr: number");
  EXPECT_EQ(lines[4], "form[].name: text");
}

TEST(Schema, ListsNullableAndComputedKeys) {
  std::vector<std::string> lines;
  for (const SchemaEntry& each : schema<Measured>()) lines.push_back(str(each.path, ": ", each.type, ", ", each.default_value));
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "samples: integer, 0", "right: integer, 0", "accuracy: number or null, none", "loss: number or null, none",
                       "optimizer: block or null, none", "optimizer.lr: number, 0.1", "optimizer.momentum: number, 0.0",
                       "optimizer.nesterov: true or false, false", "passes: list of blocks or null, none",
                       "passes[].layers: text, *", "passes[].ranks: list of integers, [8]", "passes[].rho: number, 0.001",
                       "note: text, none"}));
}

TEST(Schema, CarriesTheDescription) {
  EXPECT_EQ(entry("optimizer(sgd).lr").spec.help, "learning rate");
  EXPECT_EQ(range_text(entry("optimizer(sgd).lr").spec.range), "greater than 0");
  EXPECT_EQ(entry("optimizer.name").spec.choices, (std::vector<std::string_view>{"sgd", "adamw"}));
  EXPECT_TRUE(entry("stages[].name").spec.required);
}

TEST(RangeText, SaysWhichEndsAreLegal) {
  EXPECT_EQ(range_text({}), "");
  EXPECT_EQ(range_text(at_least(1)), "at least 1");
  EXPECT_EQ(range_text(between(1, 1048576)), "in [1, 1048576]");
  EXPECT_EQ(range_text(at_least(0.05)), "at least 0.05");
  EXPECT_EQ(range_text({.max = 3}), "at most 3");
  EXPECT_EQ(range_text({.max = 3, .open_max = true}), "less than 3");
  EXPECT_EQ(range_text({.min = 0, .max = 1, .open_min = true}), "in (0, 1]");
}

}  // namespace
}  // namespace tessera
