// export --layout tensorboard: of runs that were held to low rank, uninterrupted and resumed, and what TensorBoard reads of them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "core/config/value.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/end_to_end/small_run.h"
#include "tests/end_to_end/trained_run.h"
#include "tests/support/python.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBlocks = R"(
data: {name: glyphs, count: 200, test_count: 20, batch: 20, val: 0.1}
optimizer: {name: sgd, lr: 0.05}
log_every: 3
checkpoint: {every: 4s, keep: 2}
stages:
  - {name: dense, train: 2e}
  - {name: held, train: 2e, admm: {layers: conv2, format: tucker2, ranks: {out: 4, in: 4}, keep: always, rho: 1, update: 4s}}
  - {name: pruned, train: 1e, prune: {layers: conv1, sparsity: {target: 0.5, schedule: one_shot}}}
)";

class TensorBoardExport : public TrainedRun {
 protected:
  static void SetUpTestSuite() { train_shared(tiny_experiment(kBlocks)); }

  static Outcome export_to(const std::string& out, const std::vector<std::string>& runs) {
    return run_program(joined(joined({"export"}, runs), {"--layout", "tensorboard", "-o", out}));
  }
  static std::string events(const std::string& folder) { return read_bytes(folder + "/events.out.tfevents.tessera"); }

  // The steps at which metrics.jsonl has a number under this top-level key.
  static std::vector<std::int64_t> logged(const std::string& key) {
    std::vector<std::int64_t> steps;
    for (const std::string& line : split(read_bytes(run() + "/metrics.jsonl"), '\n')) {
      if (line.empty()) continue;
      const Value value = parse_json(line, "metrics.jsonl");
      if (value.find(key) != nullptr) steps.push_back(value.at("step").as_int());
    }
    return steps;
  }
};

TEST_F(TensorBoardExport, OfAResumedRunIsThatOfOneWithoutABreak) {
  const std::string killed = *folder_ / "killed/tiny/1";
  train_killed_and_resumed({"train", file(), "--runs", *folder_ / "killed"}, killed, {"step:10", "step:27"});
  ASSERT_EQ(read_bytes(killed + "/metrics.jsonl"), read_bytes(run() + "/metrics.jsonl"));
  // The clock's figures differ between runs. Only their count is compared: one for each step.
  const std::string whole = copy_of_run("whole");
  for (const std::string& each : {whole, killed}) {
    EXPECT_EQ(split(read_bytes(each + "/timing.jsonl"), '\n').size(), logged("loss").size() + 1);
    write_bytes(each + "/timing.jsonl", "");
    fs::remove(each + "/status.json");
    fs::copy_file(run() + "/config.resolved.yaml", each + "/config.resolved.yaml", fs::copy_options::overwrite_existing);
  }
  const std::string out = *folder_ / "resumed";
  expect_outcome(export_to(out, {whole, killed}), 0, "wrote 2 runs to " + out + "\nnext: tensorboard --logdir " + out + "\n");
  const std::string name = fs::path(folder_->path()).filename().string();
  EXPECT_EQ(events(out + "/tiny/1"), events(out + "/" + name + "/whole"));
}

TEST_F(TensorBoardExport, IsReadByTensorBoard) {
  const char* const named = std::getenv("TESSERA_TENSORBOARD_PYTHON");
  const std::string python = python_with("tensorboard", named == nullptr ? "" : named);
  if (python.empty()) GTEST_SKIP() << "no python3 with tensorboard";
  const std::string out = *folder_ / "events";
  ASSERT_EQ(export_to(out, {run()}).exit_code, 0);
  expect_outcome(export_to(out, {run()}), 0, "wrote 1 run to ");

  const std::string told = output_of(python + " " + (fs::path(TESSERA_PAGES) / "read_events.py").string() + " " + out);
  ASSERT_TRUE(told.starts_with("{")) << told;
  const Value read = parse_json(told, "read_events.py");
  ASSERT_EQ(read.as_map().size(), 1u) << told;
  const Value& scalars = read.at("tiny/1").at("scalars");
  const auto steps = [&](const std::string& tag) {
    std::vector<std::int64_t> all;
    for (const Value& point : scalars.at(tag).as_list()) all.push_back(point.as_list().front().as_int());
    return all;
  };
  for (const char* const key : {"loss", "lr", "val_loss", "val_accuracy"}) EXPECT_EQ(steps(key), logged(key)) << key;
  EXPECT_EQ(steps("samples_per_second"), logged("loss"));
  EXPECT_EQ(steps("admm/rho"), logged("admm"));
  EXPECT_EQ(steps("admm/relative"), logged("admm"));
  EXPECT_EQ(steps("prune/sparsity"), logged("prune"));
  EXPECT_EQ(scalars.at("admm/rho").as_list().front().as_list().back().as_string(), "1.0");
  EXPECT_EQ(scalars.find("admm/layer"), nullptr) << "a name is no number";
  const Value::List& texts = read.at("tiny/1").at("text").at("config.resolved.yaml").as_list();
  ASSERT_EQ(texts.size(), 1u);
  expect_in(texts.front().as_string(), "    name: tiny\n");
}

TEST_F(TensorBoardExport, BadInputIsRefused) {
  const std::string out = *folder_ / "refused";
  const std::string fresh = copy_of_run("fresh");
  for (const char* const name : {"/metrics.jsonl", "/timing.jsonl"}) write_bytes(fresh + name, "");
  expect_outcome(export_to(out, {run(), fresh}), 2, "export: " + fresh + " has logged no number yet");
  expect_outcome(export_to(*folder_ / "runs", {run()}), 2, "is no export for TensorBoard; give a folder that holds nothing else");
  expect_outcome(run_program({"export", run(), fresh, "--layout", "torch", "-o", out}), 2,
                 "export: --layout torch takes one run; given 2");
  EXPECT_FALSE(fs::exists(out));
}

}  // namespace
}  // namespace tessera::testing
