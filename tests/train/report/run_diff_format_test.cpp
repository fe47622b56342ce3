#include <gtest/gtest.h>

#include "train/report/run_diff.h"

namespace tessera {
namespace {

RunDiff of_files() {
  RunDiff diff;
  diff.a.path = "a.yaml";
  diff.b.path = "b.yaml";
  diff.keys = {{"optimizer.lr", Value(0.1), Value()}};
  return diff;
}

RunDiff of_runs() {
  RunDiff diff;
  diff.a = {"runs/a", true, "dense", 12};
  diff.b = {"runs/b", true, "", -1};
  diff.environment = std::vector<KeyChange>();
  diff.metrics = {{"dense:loss", Value(0.5), Value(0.25)}};
  diff.first_metric = FirstMetric{3, "dense", 30, {{"loss", Value(0.5), Value(0.25)}}};
  diff.layers = {{{"tucker:conv1:rank_out", Value(8), Value("x")}}};
  diff.weights = WeightsDiff{9, {{"conv1.weight", "", 0.125}, {"conv2.weight", "only in a: f32 [3]", 0}}};
  diff.trouble = {"b: has no intact checkpoint"};
  return diff;
}

TEST(RunDiffJson, OfFilesHasOnlyKeys) {
  EXPECT_EQ(to_json(to_value(of_files())),
            R"({"a":{"path":"a.yaml","run":false,"stage":null,"step":null},)"
            R"("b":{"path":"b.yaml","run":false,"stage":null,"step":null},"differ":true,)"
            R"("keys":[{"key":"optimizer.lr","a":0.1,"b":null}],"environment":null,"data":null,"metrics":null,)"
            R"("decisions":null,"layers":null,"weights":null,"trouble":[]})");
}

TEST(RunDiffJson, OfRunsHasWhatBothTell) {
  EXPECT_EQ(to_json(to_value(of_runs())),
            R"({"a":{"path":"runs/a","run":true,"stage":"dense","step":12},)"
            R"("b":{"path":"runs/b","run":true,"stage":null,"step":null},"differ":true,"keys":[],"environment":[],"data":null,)"
            R"("metrics":{"stages":[{"key":"dense:loss","a":0.5,"b":0.25}],)"
            R"("first":{"line":3,"stage":"dense","step":30,"values":[{"key":"loss","a":0.5,"b":0.25}]}},"decisions":null,)"
            R"("layers":[{"key":"tucker:conv1:rank_out","a":8,"b":"x"}],)"
            R"("weights":{"tensors":9,"differing":[{"name":"conv1.weight","what":"","max_abs":0.125},)"
            R"({"name":"conv2.weight","what":"only in a: f32 [3]","max_abs":null}]},"trouble":["b: has no intact checkpoint"]})");
}

}  // namespace
}  // namespace tessera
