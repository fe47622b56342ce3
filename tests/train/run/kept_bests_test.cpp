// Which best checkpoints a run of three stages keeps, and what is said of one that is gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/support/error.h"
#include "tests/core/io/forwarding_vfs.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"
#include "train/config/yaml.h"
#include "train/run/amend.h"
#include "train/run/fork.h"
#include "train/run/saved_point.h"
#include "train/run/session.h"
#include "train/run/status.h"

namespace tessera {
namespace {

// 60 training samples, two steps an epoch. With a learning rate of 0 all evaluations are equal, so that a stage's first epoch
// is its best: steps 2, 8 and 14. The stages end at steps 6, 12 and 18.
std::string experiment_text(const std::string& keep_best) {
  return str(R"(version: 1
name: x
threads: {compute: 1, loader: 0}
deterministic: true
data: {name: glyphs, count: 80, test_count: 16, batch: 30, val: 0.2}
model: {name: mlp, hidden: [6]}
optimizer: {name: sgd, lr: 0}
stages: [{name: a, train: 3e}, {name: b, train: 3e}, {name: c, train: 3e}]
checkpoint: {every: 1e, keep: 1, keep_best: )",
             keep_best, "}\nlog_every: 1\n");
}

// Requests a stop once the run's status reports this step.
class StopAtStep final : public ForwardingVfs {
 public:
  explicit StopAtStep(std::int64_t step) : ForwardingVfs(real_vfs()), step_(step) {}
  ~StopAtStep() override { StopRequest::clear(); }
  void replace(const Path& from, const Path& to) override {
    below_.replace(from, to);
    if (to.filename() == "status.json" && load_status(below_, to).global_step == step_) StopRequest::signal(15);
  }

 private:
  std::int64_t step_;
};

using Steps = std::vector<std::int64_t>;

const Steps kEachStages{2, 6, 8, 12, 14, 16, 18};  // 16 is the newest step before the end and no best
const Steps kTheNewest{6, 12, 14, 16, 18};

class KeptBestsOfARun : public ::testing::Test {
 protected:
  RunOutcome train(Vfs& vfs, const RunFolder& folder, const std::string& keep_best) {
    const std::string text = experiment_text(keep_best);
    const Experiment experiment = parse_experiment(parse_yaml(text, "x.yaml"));
    return Session::start(vfs, experiment, load_inputs(vfs, experiment.config), text, folder, {}).run();
  }
  RunFolder trained(const std::string& keep_best) {
    RunFolder folder = new_folder();
    EXPECT_EQ(train(real_vfs(), folder, keep_best), RunOutcome::finished);
    return folder;
  }
  RunFolder stopped_at(std::int64_t step, const std::string& keep_best) {
    RunFolder folder = new_folder();
    StopAtStep vfs(step);
    EXPECT_EQ(train(vfs, folder, keep_best), RunOutcome::stopped);
    return folder;
  }
  static void finish(const RunFolder& folder) { EXPECT_EQ(Session::resume(real_vfs(), folder, {}).run(), RunOutcome::finished); }

  RunFolder new_folder() { return RunFolder::create(real_vfs(), runs_.path().string(), "x"); }
  static Steps steps(const RunFolder& folder) { return CheckpointStore(real_vfs(), folder.checkpoints()).steps(); }
  static std::string refusal(const RunFolder& folder, const std::string& at) {
    return message_of<ConfigError>([&] { load_at(real_vfs(), folder, at, "eval"); });
  }

  TemporaryFolder runs_;
};

TEST_F(KeptBestsOfARun, EachStageKeepsItsOwn) {
  const RunFolder folder = trained("stage");
  EXPECT_EQ(steps(folder), kEachStages);
  EXPECT_EQ(load_at(real_vfs(), folder, "2", "eval").step, 2);
  EXPECT_EQ(load_at(real_vfs(), folder, "best", "eval").step, 14);
}

TEST_F(KeptBestsOfARun, OrTheNewestStageDoes) {
  const RunFolder folder = trained("run");
  EXPECT_EQ(steps(folder), kTheNewest);
  EXPECT_EQ(load_at(real_vfs(), folder, "best", "eval").step, 14);
}

TEST_F(KeptBestsOfARun, OneThatWasLetGoIsSaidToBe) {
  const RunFolder folder = trained("run");
  EXPECT_EQ(refusal(folder, "2"),
            "eval: no checkpoint '2'; it was the best of stage a, which was let go for that of stage b, step 8 "
            "(checkpoint.keep_best: run); there are: 6=a 12=b 14 16 18=c");
  EXPECT_EQ(refusal(folder, "8")
                .find("eval: no checkpoint '8'; it was the best of stage b, which was let go for that of stage c, "
                      "step 14 (checkpoint.keep_best: run); "),
            0U)
      << refusal(folder, "8");
  EXPECT_EQ(refusal(folder, "4"), "eval: no checkpoint '4'; there are: 6=a 12=b 14 16 18=c") << "it was no best";
}

TEST_F(KeptBestsOfARun, StoppedBeforeTheSecondStagesBest) {
  const RunFolder run = stopped_at(7, "run"), stage = stopped_at(7, "stage");
  EXPECT_EQ(steps(run), (Steps{2, 6, 7}));
  EXPECT_EQ(steps(stage), (Steps{2, 6, 7}));
  finish(run);
  EXPECT_EQ(steps(run), kTheNewest);
  finish(stage);
  EXPECT_EQ(steps(stage), kEachStages);
}

TEST_F(KeptBestsOfARun, StoppedAfterTheSecondStagesBest) {
  const RunFolder run = stopped_at(9, "run"), stage = stopped_at(9, "stage");
  EXPECT_EQ(steps(run), (Steps{6, 8, 9}));
  EXPECT_EQ(steps(stage), (Steps{2, 6, 8, 9}));
  finish(run);
  EXPECT_EQ(steps(run), kTheNewest);
  finish(stage);
  EXPECT_EQ(steps(stage), kEachStages);
}

TEST_F(KeptBestsOfARun, StoppedBetweenTheStages) {
  const RunFolder run = stopped_at(6, "run");
  EXPECT_EQ(steps(run), (Steps{2, 4, 6}));
  finish(run);
  EXPECT_EQ(steps(run), kTheNewest);
}

TEST_F(KeptBestsOfARun, AResumeMayChangeIt) {
  const RunFolder folder = stopped_at(9, "stage");
  ASSERT_EQ(steps(folder), (Steps{2, 6, 8, 9}));
  const std::vector<std::string> change{"checkpoint.keep_best=run"};
  amend_run(real_vfs(), folder, change);
  finish(folder);
  EXPECT_EQ(steps(folder), kTheNewest);
}

TEST_F(KeptBestsOfARun, AForkHasItsOwn) {
  const RunFolder parent = trained("stage");
  const std::vector<std::string> change{"checkpoint.keep_best=run"};
  const RunFolder fork = fork_run(real_vfs(), parent, "b", change, runs_.path().string());
  EXPECT_EQ(steps(fork), (Steps{6, 12}));
  EXPECT_EQ(refusal(fork, "best"),
            "eval: no checkpoint '8'; it was the best of stage b, which this folder lacks: a fork takes only its start and the "
            "ends of stages along; there are: 6=a 12=b");
  finish(fork);
  EXPECT_EQ(steps(fork), kTheNewest);
  EXPECT_EQ(steps(parent), kEachStages) << "the parent is as it was";
}

}  // namespace
}  // namespace tessera
