// A whole run with every thread it has: loader, compute, and a save beside each step.
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/core/io/temporary_folder.h"
#include "train/config/yaml.h"
#include "train/session.h"

namespace tessera {
namespace {

TEST(SessionThreads, TrainsPinsAndReportsBesideItsSaves) {
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
  const TemporaryFolder runs;
  const RunFolder folder = RunFolder::create(real_vfs(), runs.path().string(), "x");
  const Experiment experiment = parse_experiment(parse_yaml(kText, "x.yaml"));
  EXPECT_EQ(Session::start(real_vfs(), experiment, kText, folder, {}).run(), RunOutcome::finished);
  const CheckpointStore store(real_vfs(), folder.checkpoints());
  EXPECT_EQ(store.load_latest().step, 15) << "five steps an epoch";
  EXPECT_TRUE(store.load_latest().damaged.empty());
}

}  // namespace
}  // namespace tessera
