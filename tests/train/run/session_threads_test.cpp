// A whole run with all its threads: loader, compute, and a background save after each step.
#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/core/io/expect_error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/train/checkpoint/failing_save.h"
#include "train/config/yaml.h"
#include "train/run/session.h"
#include "train/run/status.h"

namespace tessera {
namespace {

// Five steps an epoch, 15 in all; every step is saved.
constexpr const char* kText = R"(
version: 1
name: x
threads: {compute: 2, loader: 2}
data: {name: glyphs, count: 256, test_count: 32, batch: 32, val: 0.25, augment: [{pad_crop: 2}]}
model: {name: mlp, hidden: [16]}
ema: {decay: 0.9}
stages: [{name: one, train: 2e}, {name: two, train: 1e}]
checkpoint: {every: 1s, keep: 2, async: true}
log_every: 1
deterministic: true
)";

RunOutcome train(Vfs& vfs, const RunFolder& folder) {
  const Experiment experiment = parse_experiment(parse_yaml(kText, "x.yaml"));
  return Session::start(vfs, experiment, load_inputs(vfs, experiment.config), kText, folder, {}).run();
}

TEST(SessionThreads, TrainsPinsAndReportsBesideItsSaves) {
  const TemporaryFolder runs;
  const RunFolder folder = RunFolder::create(real_vfs(), runs.path().string(), "x");
  EXPECT_EQ(train(real_vfs(), folder), RunOutcome::finished);
  const CheckpointStore store(real_vfs(), folder.checkpoints());
  EXPECT_EQ(store.load_latest().step, 15);
  EXPECT_TRUE(store.load_latest().damaged.empty());
}

// Step 14 is the last step with a background save. Its error is found only at the end of the run.
TEST(SessionThreads, AFailedSaveEndsTheRun) {
  for (const std::int64_t step : {3, 14}) {
    SCOPED_TRACE(step);
    const TemporaryFolder runs;
    const RunFolder folder = RunFolder::create(real_vfs(), runs.path().string(), "x");
    FailingSave vfs(step);
    expect_io_error([&] { train(vfs, folder); }, {"vfs: create failed: path is ", str("/checkpoints/.tmp-", step, '-')});
    EXPECT_EQ(CheckpointStore(real_vfs(), folder.checkpoints()).load_latest().step, step - 1);
    const RunStatus status = load_status(real_vfs(), folder.status());
    EXPECT_EQ(status.state, "failed");
    EXPECT_EQ(status.last_checkpoint_step, step - 1);
  }
}

}  // namespace
}  // namespace tessera
