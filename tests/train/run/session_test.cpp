// What a running session reports of itself.
#include "train/run/session.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/core/io/forwarding_vfs.h"
#include "tests/core/io/temporary_folder.h"
#include "train/config/yaml.h"
#include "train/run/decisions_file.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"
#include "train/run/status.h"

namespace tessera {
namespace {

constexpr const char* kNetwork = R"(version: 1
name: x
threads: {compute: 1, loader: 0}
model:
  name: layers
  layers:
    - {conv2d: {out: 4, kernel: 3, stride: 4, name: conv1}}
    - {conv2d: {out: 4, kernel: 3, name: conv2}}
    - global_avg_pool
    - {linear: {out: 10, name: fc}}
)";

// Five steps an epoch. Stages log at the ends of their epochs alone.
const std::string kStages = std::string(kNetwork) + R"(data: {name: glyphs, count: 200, test_count: 32, batch: 32, val: 0.2}
stages:
  - {name: short, train: 1e}
  - {name: factor, factorise: {keep: always, layers: conv2, ranks: {out: 2, in: 2}}}
  - {name: long, train: 2e}
checkpoint: {every: 3s, async: false}
log_every: 1000
deterministic: true
)";

// Records the loss of every status.
class StatusReader final : public ForwardingVfs {
 public:
  StatusReader() : ForwardingVfs(real_vfs()) {}
  void replace(const Path& from, const Path& to) override {
    below_.replace(from, to);
    if (to.filename() != "status.json") return;
    const RunStatus status = load_status(below_, to);
    if (status.state == "training") losses[status.stage].push_back(status.loss);
  }
  std::map<std::string, std::vector<std::optional<double>>> losses;
};

TEST(Session, ShowsNoLossOfTheStageBefore) {
  const TemporaryFolder runs;
  StatusReader vfs;
  const RunFolder folder = RunFolder::create(vfs, runs.path().string(), "x");
  std::ostringstream out;
  SessionOptions options;
  options.out = &out;
  const Experiment experiment = parse_experiment(parse_yaml(kStages, "x.yaml"));
  ASSERT_EQ(Session::start(vfs, experiment, load_inputs(vfs, experiment.config), kStages, folder, options).run(),
            RunOutcome::finished);

  const std::string text = out.str();
  EXPECT_NE(text.find("short epoch 1  loss "), std::string::npos) << text;
  EXPECT_NE(text.find("long epoch 1  loss "), std::string::npos) << text;
  EXPECT_NE(text.find("long epoch 2  loss "), std::string::npos) << text;

  ASSERT_FALSE(vfs.losses["short"].empty());
  EXPECT_GT(vfs.losses["short"].back().value_or(0), 0.0);
  ASSERT_FALSE(vfs.losses["factor"].empty());
  for (const std::optional<double>& loss : vfs.losses["factor"]) EXPECT_FALSE(loss) << "a factorisation has none";
  const std::vector<std::optional<double>>& losses = vfs.losses["long"];
  ASSERT_GE(losses.size(), 2u) << "saves at steps 3 and 6";
  EXPECT_FALSE(losses[0]) << "before the stage's first epoch ends";
  EXPECT_GT(losses.back(), 0.0);
}

// Requests a stop when the given line is printed.
class StopAtLine final : public std::stringbuf {
 public:
  explicit StopAtLine(std::string line) : line_(std::move(line)) {}
  ~StopAtLine() override { StopRequest::clear(); }

 protected:
  int sync() override {
    if (str().find(line_) != std::string::npos) StopRequest::signal(15);
    return 0;
  }

 private:
  std::string line_;
};

const std::string kPassFirst = std::string(kNetwork) + R"(data: {name: glyphs, count: 64, test_count: 32, batch: 32, val: 0}
stages: [{name: factor, factorise: {keep: always, layers: conv2, ranks: {out: 2, in: 2}}, train: 2s}]
report: {latency: {batch: [2, 8]}}
)";

TEST(Session, AStopIsHeardInsideAPassAndTheTimesUntilThenAreKept) {
  const TemporaryFolder runs;
  const RunFolder folder = RunFolder::create(real_vfs(), runs.path().string(), "x");
  const Experiment experiment = parse_experiment(parse_yaml(kPassFirst, "x.yaml"));
  {
    StopAtLine buffer("factor: timing conv2 dense and compressed\n");  // the network is timed next
    std::ostream out(&buffer);
    SessionOptions options;
    options.out = &out;
    EXPECT_EQ(
        Session::start(real_vfs(), experiment, load_inputs(real_vfs(), experiment.config), kPassFirst, folder, options).run(),
        RunOutcome::stopped);
  }
  const DecisionMap until_then = read_decisions(real_vfs(), folder.decisions());
  EXPECT_EQ(load_status(real_vfs(), folder.status()).state, "stopped");
  ASSERT_FALSE(until_then.empty());
  for (const auto& [key, text] : until_then) EXPECT_FALSE(key.starts_with("keep.network")) << key;

  ASSERT_EQ(Session::resume(real_vfs(), folder, {}).run(), RunOutcome::finished);
  const DecisionMap after = read_decisions(real_vfs(), folder.decisions());
  for (const auto& [key, text] : until_then) EXPECT_EQ(after.at(key), text);
  EXPECT_GT(after.size(), until_then.size());
}

const std::string kPruned = std::string(kNetwork) + R"(data: {name: glyphs, count: 160, test_count: 32, batch: 32, val: 0}
stages: [{name: pruned, train: 5s, prune: {sparsity: {schedule: iterative, target: 0.75, begin: 0s, end: 3s, every: 1s}}}]
checkpoint: {every: 1000s, async: false}
deterministic: true
)";

TEST(Session, AStopBeforeTheFirstStepDoesNotPruneTwice) {
  const TemporaryFolder runs;
  const Experiment experiment = parse_experiment(parse_yaml(kPruned, "x.yaml"));
  const RunFolder stopped = RunFolder::create(real_vfs(), runs.path().string(), "x");
  const RunFolder straight = RunFolder::create(real_vfs(), runs.path().string(), "x");
  const auto start = [&](const RunFolder& folder, const SessionOptions& options) {
    return Session::start(real_vfs(), experiment, load_inputs(real_vfs(), experiment.config), kPruned, folder, options).run();
  };
  SessionOptions at_once;
  at_once.stop.set_time_limit(std::chrono::steady_clock::now());
  ASSERT_EQ(start(stopped, at_once), RunOutcome::stopped);
  ASSERT_EQ(Session::resume(real_vfs(), stopped, {}).run(), RunOutcome::finished);
  ASSERT_EQ(start(straight, {}), RunOutcome::finished);
  const auto weights = [](const RunFolder& folder) {
    const Checkpoint newest = load_newest(real_vfs(), folder);
    return saved_weights(newest).tensors.at("conv2.weight").to_vector<float>();
  };
  EXPECT_EQ(weights(stopped), weights(straight));
}

// A resume may change the report's batches. The batch that decides which layers stay is therefore stored with the run.
TEST(Session, SettlesTheBatchThatDecidesWhichLayersStay) {
  const TemporaryFolder runs;
  const RunFolder folder = RunFolder::create(real_vfs(), runs.path().string(), "x");
  const Experiment experiment = parse_experiment(parse_yaml(kPassFirst, "x.yaml"));
  Session::start(real_vfs(), experiment, load_inputs(real_vfs(), experiment.config), kPassFirst, folder, {});
  const ExperimentConfig stored = parse_experiment(load_yaml(folder.resolved_config())).config;
  EXPECT_EQ(stored.stages.at(0).factorise->keep_for.batch, 8);
}

}  // namespace
}  // namespace tessera
