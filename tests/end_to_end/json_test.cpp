// --json of the commands that read an experiment file: the keys that docs/json.md promises, and the exit codes of the plain form.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"

namespace tessera::testing {
namespace {

constexpr const char* kExperiment = R"(version: 1
name: small
threads: {compute: 1, loader: 0}
data: {name: glyphs, count: 100, test_count: 20, batch: 10}
model: {name: layers, layers: [{conv2d: {out: 8, kernel: 3, name: conv1}}, {conv2d: {out: 12, kernel: 3, name: conv2}},
  global_avg_pool, {linear: {out: 10}}]}
optimizer: {name: sgd, lr: 0.25}
schedule: {name: cosine, warmup: 5s}
stages:
  - {name: dense, train: 2e}
  - {name: small, factorise: {keep: always, layers: "conv*", ranks: [{layers: "*", macs: 0.9}, {layers: conv2, out: 2, in: 3}]}}
)";

using Texts = std::vector<std::string>;

Texts keys_of(const Value& map) {
  Texts keys;
  for (const Value::Entry& entry : map.as_map()) keys.push_back(entry.key);
  return keys;
}

class Json : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(file_, kExperiment); }

  Value json(const std::vector<std::string>& arguments, int exit_code = 0) const {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.output;
    return parse_json(outcome.output, "output");  // nothing but JSON
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "small.yaml";
};

TEST_F(Json, PlanHasTheKeysThatAreDocumented) {
  const Value plan = json({"plan", file_, "--json"});
  EXPECT_EQ(keys_of(plan), (Texts{"data", "device", "precision", "network", "stages", "memory_peak", "disk_bytes"}));
  EXPECT_EQ(keys_of(plan.at("data")), (Texts{"name", "train", "val", "test", "input", "batch", "steps_per_epoch"}));
  EXPECT_EQ(keys_of(plan.at("network")), (Texts{"parameters", "macs", "weight_bytes", "layers"}));
  const Value& dense = plan.at("stages").as_list().at(0);
  EXPECT_EQ(keys_of(dense), (Texts{"name", "passes", "network", "train", "admm", "memory", "disk"}));
  EXPECT_TRUE(dense.at("passes").as_list().empty());
  EXPECT_EQ(keys_of(dense.at("train")), (Texts{"steps", "epochs", "schedule", "first_lr", "peak_lr", "last_lr", "warmup_steps"}));
  EXPECT_EQ(keys_of(dense.at("memory")), (Texts{"peak", "data_set", "loader", "weights", "optimizer", "hooks", "snapshot",
                                                "gradients", "activations", "temporaries"}));
  EXPECT_EQ(keys_of(dense.at("disk")), (Texts{"bytes", "training_checkpoint", "end_checkpoint", "best", "replaced", "newest"}));
  const Value& small = plan.at("stages").as_list().at(1);
  EXPECT_TRUE(small.at("train").is_null());
  EXPECT_TRUE(small.at("memory").is_null());
  const Value& pass = small.at("passes").as_list().at(0);
  EXPECT_EQ(keys_of(pass),
            (Texts{"pass", "layers", "parameters_before", "parameters_after", "macs_before", "macs_after", "weight_bytes_before",
                   "weight_bytes_after", "recalibrated", "timed_at", "other_phases", "ranks", "comparison"}));
  EXPECT_EQ(keys_of(pass.at("comparison").at("rules").as_list().at(0)), (Texts{"rule", "ranks", "parameters_kept", "macs_kept"}));
  EXPECT_EQ(keys_of(pass.at("ranks").as_list().at(0)), (Texts{"asked", "layers", "changed", "parameters_kept", "macs_kept"}));
}

TEST_F(Json, PlanOfSeveralProcessesHasTheKeysThatAreDocumented) {
  const std::vector<std::string> words{"plan", file_, "--ranks", "2"};
  const Value plan = json(joined(words, {"--bandwidth", "25G", "--latency", "10us", "--json"}));
  const Value& scaling = plan.at("scaling");
  EXPECT_EQ(keys_of(scaling), (Texts{"stage", "gradient_bytes", "messages", "rows"}));
  ASSERT_EQ(scaling.at("rows").as_list().size(), 2u);
  EXPECT_EQ(keys_of(scaling.at("rows").as_list().at(1)), (Texts{"ranks", "samples", "together", "compute_ms", "exchange_ms",
                                                                "exposed_ms", "tree_ms", "step_ms", "speedup", "efficiency"}));
  expect_outcome(run_program(joined(words, {"--bandwidth", "25G", "--latency", "10us"})), 0, "efficiency");
  expect_outcome(run_program(words), 2, "--ranks: needs the network between them, such as --bandwidth 25G --latency 10us");
  expect_outcome(run_program({"plan", file_, "--latency", "10us"}), 2,
                 "--bandwidth, --latency and --ranks-per-machine are of several --ranks");
}

TEST_F(Json, PlanHasNumbersThatAddUp) {
  const Value plan = json({"plan", file_, "--json"});
  const Value& stages = plan.at("stages");
  const Value& train = stages.as_list()[0].at("train");
  EXPECT_EQ(train.at("steps").as_int(), 2 * plan.at("data").at("steps_per_epoch").as_int());
  EXPECT_EQ(train.at("first_lr").as_double(), 0.05);
  EXPECT_EQ(train.at("peak_lr").as_double(), 0.25);
  EXPECT_EQ(train.at("warmup_steps").as_int(), 5);
  const Value& memory = stages.as_list()[0].at("memory");
  std::int64_t sum = 0;
  for (const Value::Entry& entry : memory.as_map()) sum += entry.key == "peak" ? 0 : entry.value.as_int();
  EXPECT_EQ(memory.at("peak").as_int(), sum);
  EXPECT_EQ(plan.at("memory_peak").as_int(), sum);
  std::int64_t disk = 0;
  for (const Value& stage : stages.as_list()) disk += stage.at("disk").at("bytes").as_int();
  EXPECT_EQ(plan.at("disk_bytes").as_int(), disk);
  const Value& conv2 = stages.as_list()[1].at("passes").as_list().at(0).at("layers").as_list().at(1);
  EXPECT_EQ(conv2.at("path").as_string(), "conv2");
  EXPECT_EQ(to_json(conv2.at("ranks")), R"({"out":2,"in":3})");
}

TEST_F(Json, PlanForPeopleSaysTheSame) {
  const std::string text = run_program({"plan", file_}).output;
  for (const char* part :
       {"train: 18 steps of 10 samples = 2 epochs of 9 steps\n", "learning rate (cosine): first 0.05, peak 0.25, last 0.00363",
        "; warm-up ends after 5 steps\n", "memory at the peak of a training step: ", "  saved activations",
        "asked out 2 in 3: 1 of 1 layers changed, ", "checkpoints: ", "\nin all: memory "}) {
    expect_in(text, part);
  }
}

TEST_F(Json, LayersSaysWhatMayBeCompressed) {
  const Value answer = json({"layers", file_, "--json"});
  const auto& rows = answer.at("layers").as_list();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(keys_of(rows[0]), (Texts{"path", "kind", "input", "output", "parameters", "macs", "weight_bytes", "formats"}));
  EXPECT_EQ(rows[1].at("path").as_string(), "conv2");
  const Value& conv2 = rows[1].at("formats");
  EXPECT_EQ(keys_of(conv2), (Texts{"tucker2", "svd", "spatial_svd", "cp", "tt", "tt_garipov"}));
  EXPECT_TRUE(conv2.at("tucker2").at("possible").as_bool());
  EXPECT_EQ(conv2.at("svd").at("reason").as_string(), "has a 3x3 kernel; svd needs 1x1");
  const Value& linear = rows[3].at("formats");
  EXPECT_FALSE(linear.at("tucker2").at("possible").as_bool());
  EXPECT_EQ(linear.at("tucker2").at("reason").as_string(), "is a linear; tucker2 factors conv2d");
  EXPECT_TRUE(linear.at("svd").at("possible").as_bool());
}

TEST_F(Json, LayersForPeopleSaysTheSame) {
  const std::string text = run_program({"layers", file_}).output;
  expect_in(
      text,
      "\nconv2  conv2d                  876  497664  tucker2, spatial_svd, cp, tt, tt_garipov\n2      global_avg_pool           "
      "0       0  -\n");
  expect_in(text, "\nsvd                                   conv1, conv2  has a 3x3 kernel; the format needs 1x1\n");
  expect_in(text, "\ntucker2, spatial_svd, cp, tt_garipov  3             is a linear; the format factors conv2d\n");
  expect_in(text,
            "\nall                                   2             is a global_avg_pool; formats hold conv2d, linear and "
            "embedding\nnext: tessera train ");
}

TEST_F(Json, LayersNamesTheFirstOfManyThatAFormatCannotHold) {
  write_bytes(
      file_,
      str("version: 1\nname: many\ndata: {name: glyphs, count: 100, test_count: 20, batch: 10}\nmodel: {name: layers, layers: [",
          "relu, relu, relu, relu, relu, flatten, {linear: {out: 10}}]}\nstages: [{name: dense, train: 1e}]\n"));
  expect_in(run_program({"layers", file_}).output,
            "\nall                                   0, 1, 2 and 2 more  is a relu; formats hold conv2d, linear and embedding\n");
}

TEST_F(Json, ValidateAnswersYes) {
  const Value answer = json({"validate", "--json", file_});
  EXPECT_EQ(keys_of(answer), (Texts{"file", "ok", "errors"}));
  EXPECT_EQ(answer.at("file").as_string(), file_);
  EXPECT_TRUE(answer.at("ok").as_bool());
  EXPECT_TRUE(answer.at("errors").as_list().empty());
}

// file:line:column: path: message
std::string line_of(const Value& error) {
  return str(error.at("file").as_string(), ':', error.at("line").as_int(), ':', error.at("column").as_int(), ": ",
             error.at("path").as_string(), ": ", error.at("message").as_string());
}

TEST_F(Json, ValidateListsWhatTheFileAndTheNetworkShow) {
  const Value keys = json({"validate", file_, "--json", "optimizer.lr=-1", "stages[1].factorise.rnaks=3"}, 2);
  EXPECT_FALSE(keys.at("ok").as_bool());
  ASSERT_EQ(keys.at("errors").as_list().size(), 2u);
  EXPECT_EQ(line_of(keys.at("errors").as_list()[0]), "command line:0:0: optimizer.lr: is -1; must be at least 0");

  const Value network =
      json({"validate", file_, "--json", "stages[1].factorise.ranks[1].out=99", "stages[1].factorise.ranks[0].layers=conv9"}, 2);
  const auto& errors = network.at("errors").as_list();
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(keys_of(errors[0]), (Texts{"file", "line", "column", "path", "message"}));
  EXPECT_EQ(errors[0].at("path").as_string(), "stages[1].factorise.ranks[0].layers");
  EXPECT_EQ(errors[1].at("message").as_string(), "layer 'conv2': out rank is 99, the mode has size 12; legal range is 1..12");
}

TEST_F(Json, ValidateListsWhatEndsTheReading) {
  write_bytes(file_, "version: 1\nname: [x\n");
  const Value broken = json({"validate", "--json", file_}, 2).at("errors").as_list().at(0);
  EXPECT_EQ(broken.at("file").as_string(), file_);
  EXPECT_EQ(broken.at("line").as_int(), 2);
  EXPECT_EQ(broken.at("column").as_int(), 7);
  const std::string none = folder_ / "none.yaml";
  EXPECT_EQ(line_of(json({"validate", "--json", none}, 2).at("errors").as_list().at(0)),
            none + ":0:0: : cannot be read: No such file or directory");
}

}  // namespace
}  // namespace tessera::testing
