// Which checkpoints a run keeps, without interruption and after a resume.
#include "train/run/run_saver.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

#include "tests/core/io/crash_vfs.h"
#include "tests/core/io/expect_error.h"
#include "tests/train/checkpoint/failing_save.h"
#include "tests/train/checkpoint/store_fixture.h"

namespace tessera {
namespace {

// A position whose best step so far is `best` (-1 = none), as in Position.
Position at(std::int64_t step, std::int64_t best) { return {.global_step = step, .best_step = best}; }
Position end_at(std::int64_t step, std::int64_t best) { return {.global_step = step, .stage_done = true, .best_step = best}; }

// The history of finished stages, each given by its best step and its last step.
RunHistory history_of(std::initializer_list<std::pair<std::int64_t, std::int64_t>> stages) {
  RunHistory history;
  for (const auto& [best, end] : stages) {
    StageRecord& stage = history.of(str("stage ", end));
    stage.done = true;
    stage.end_step = end;
    stage.best_step = best;
  }
  return history;
}

const CheckpointConfig kStage{.keep = 1, .async = false};
const CheckpointConfig kRun{.keep = 1, .keep_best = "run", .async = false};

class RunSaverPins : public CheckpointStoreTest {
 protected:
  using Steps = std::vector<std::int64_t>;

  RunSaver saver(const CheckpointConfig& config) { return RunSaver(real_vfs(), folder, config, lock); }
  RunSaver saver(bool best) { return saver(CheckpointConfig{.keep = 1, .best = best, .async = false}); }
  static void save(RunSaver& saver, const Position& position) {
    saver.save(position, parts_at(position.global_step), extra_at(position.global_step));
  }
  // Resumes from the newest intact checkpoint, which must be that of `position`.
  RunSaver resumed(const CheckpointConfig& config, const Position& position, const RunHistory& history) {
    RunSaver resumed = saver(config);
    const Checkpoint checkpoint = resumed.store().load_latest();
    EXPECT_EQ(checkpoint.step, position.global_step);
    resumed.resumed_from(checkpoint, position, history);
    return resumed;
  }
  RunSaver resumed(bool best, const Position& position) {
    return resumed({.keep = 1, .best = best, .async = false}, position, {});
  }
  Steps steps() { return reader().steps(); }
};

// Step 3 is the new best, so that saving it releases step 1. Then a part of step 3 is damaged, and the run goes on from step 2.
TEST_F(RunSaverPins, TheBestOfTheStateResumedFromStaysAndThatOfADamagedOneDoesNot) {
  {
    RunSaver before(real_vfs(), folder, {.keep = 3, .best = true, .async = false}, lock);
    save(before, at(1, 1));
    save(before, at(2, 1));
    save(before, at(3, 3));
  }
  ASSERT_EQ(steps(), (Steps{1, 2, 3}));
  overwrite("step-00000003/model.safetensors", "damaged");
  RunSaver after = resumed(true, at(2, 1));
  save(after, at(4, 1));
  EXPECT_EQ(steps(), (Steps{1, 4}));
  save(after, at(5, 5));
  EXPECT_EQ(steps(), (Steps{4, 5})) << "a better one frees it";
}

TEST_F(RunSaverPins, ResumedAtItsBestARunFreesItForABetterOne) {
  {
    RunSaver before = saver(true);
    save(before, at(1, 1));
  }
  RunSaver after = resumed(true, at(1, 1));
  save(after, at(2, 1));
  EXPECT_EQ(steps(), (Steps{1, 2}));
  save(after, at(3, 3));
  save(after, at(4, 3));
  EXPECT_EQ(steps(), (Steps{3, 4}));
}

TEST_F(RunSaverPins, AStagesEndStaysThoughALaterOneIsBetter) {
  Position end = at(1, 1);
  end.stage_done = true;
  {
    RunSaver before = saver(true);
    save(before, end);
  }
  RunSaver after = resumed(true, end);
  after.next_stage();
  save(after, at(2, 2));
  save(after, at(3, 3));
  save(after, at(4, 3));
  EXPECT_EQ(steps(), (Steps{1, 3, 4}));
}

TEST_F(RunSaverPins, TurnedOffByAResumeTheBestIsFreed) {
  {
    RunSaver before = saver(true);
    save(before, at(1, 1));
    save(before, at(2, 1));
  }
  ASSERT_EQ(steps(), (Steps{1, 2}));
  RunSaver after = resumed(false, at(2, 1));
  save(after, at(3, 1));
  EXPECT_EQ(steps(), (Steps{3}));
}

class KeptBests : public RunSaverPins {
 protected:
  // A stage of steps 1 to 3 with best step 1, then step 4 of a stage that has not validated yet.
  static void begin(RunSaver& saver) {
    for (const Position& position : {at(1, 1), at(2, 1), end_at(3, 1)}) save(saver, position);
    saver.next_stage();
    save(saver, at(4, -1));
  }
  // Three stages with bests 1, 5 and 8 and ends 3, 6 and 9.
  void train_three_stages(const CheckpointConfig& config) {
    RunSaver training = saver(config);
    begin(training);
    for (const Position& position : {at(5, 5), end_at(6, 5)}) save(training, position);
    training.next_stage();
    for (const Position& position : {at(7, -1), at(8, 8), end_at(9, 8)}) save(training, position);
  }
};

TEST_F(KeptBests, EachFinishedStageKeepsItsOwn) {
  train_three_stages(kStage);
  EXPECT_EQ(steps(), (Steps{1, 3, 5, 6, 7, 8, 9})) << "7 is the newest that is neither";
}

TEST_F(KeptBests, OrOnlyTheNewestStageThatHasOne) {
  train_three_stages(kRun);
  EXPECT_EQ(steps(), (Steps{3, 6, 7, 8, 9}));
}

TEST_F(KeptBests, AnEarlierOneStaysUntilALaterIsSaved) {
  RunSaver training = saver(kRun);
  begin(training);
  EXPECT_EQ(steps(), (Steps{1, 3, 4}));
  save(training, at(5, 5));
  EXPECT_EQ(steps(), (Steps{3, 4, 5}));
}

TEST_F(KeptBests, AStageWithoutOneReplacesNone) {
  RunSaver training = saver(kRun);
  begin(training);
  save(training, end_at(5, -1));
  training.next_stage();
  save(training, at(6, -1));
  EXPECT_EQ(steps(), (Steps{1, 3, 5, 6}));
  save(training, end_at(7, 7));
  EXPECT_EQ(steps(), (Steps{3, 5, 6, 7})) << "a stage's end may be its best";
}

TEST_F(KeptBests, TheEndOfAStageStaysThoughItWasTheBest) {
  RunSaver training = saver(kRun);
  save(training, end_at(1, 1));
  training.next_stage();
  for (const Position& position : {at(2, 2), at(3, 3), at(4, 3)}) save(training, position);
  EXPECT_EQ(steps(), (Steps{1, 3, 4}));
}

TEST_F(KeptBests, AFailedSaveReplacesNone) {
  FailingSave vfs(5);
  RunSaver training(vfs, folder, kRun, lock);
  begin(training);
  expect_io_error([&] { save(training, at(5, 5)); }, {"vfs: create failed: path is ", "/.tmp-5-"});
  EXPECT_EQ(steps(), (Steps{1, 3, 4}));
}

// Whatever a crash leaves of a save that replaces a best, the old best or the new one loads.
TEST_F(KeptBests, NoCrashLeavesNone) {
  CrashVfs disk;
  disk.make_directory("/run");
  disk.sync_directory("/");
  RunSaver training(disk, "/run/checkpoints", kRun, lock);
  begin(training);
  const auto loads = [](CrashVfs& left, std::int64_t step) {
    try {
      expect_checkpoint(CheckpointStore(left, "/run/checkpoints").load(step), step);
      return true;
    } catch (const IoError&) {
      return false;
    }
  };
  int only_old = 0, both = 0, only_new = 0;
  std::uint64_t operations = 0;
  disk.before_change = [&](const std::string& operation) {
    each_crash(disk, ++operations, [&](const std::string& name, CrashVfs& left) {
      const bool old_one = loads(left, 1), new_one = loads(left, 5);
      EXPECT_TRUE(old_one || new_one) << "before " << operation << ", " << name;
      only_old += old_one && !new_one;
      both += old_one && new_one;
      only_new += new_one && !old_one;
    });
  };
  save(training, at(5, 5));
  disk.before_change = nullptr;
  EXPECT_GT(only_old, 0);
  EXPECT_GT(both, 0);
  EXPECT_GT(only_new, 0);
}

TEST_F(KeptBests, AResumeBetweenTheStagesKnowsTheEarlierOne) {
  {
    RunSaver before = saver(kRun);
    for (const Position& position : {at(1, 1), at(2, 1), end_at(3, 1)}) save(before, position);
  }
  RunSaver after = resumed(kRun, end_at(3, 1), history_of({{1, 3}}));
  after.next_stage();
  save(after, at(4, -1));
  EXPECT_EQ(steps(), (Steps{1, 3, 4}));
  save(after, at(5, 5));
  EXPECT_EQ(steps(), (Steps{3, 4, 5}));
}

TEST_F(KeptBests, AResumeInALaterStageKnowsTheEarlierOne) {
  {
    RunSaver before = saver(kRun);
    begin(before);
  }
  RunSaver after = resumed(kRun, at(4, -1), history_of({{1, 3}}));
  save(after, at(5, -1));
  EXPECT_EQ(steps(), (Steps{1, 3, 5}));
  save(after, at(6, 6));
  EXPECT_EQ(steps(), (Steps{3, 5, 6}));
}

// The state after a kill between the commit of 5 and the removal of 1. Then 5 is damaged, and the run goes on from step 4.
TEST_F(KeptBests, OneThatWasLetGoForALostOneIsKeptAgain) {
  {
    RunSaver before = saver(CheckpointConfig{.keep = 3, .keep_best = "run", .async = false});
    begin(before);
    save(before, at(5, 5));
  }
  ASSERT_EQ(steps(), (Steps{1, 2, 3, 4, 5}));
  overwrite("step-00000005/model.safetensors", "damaged");
  RunSaver after = resumed(kRun, at(4, -1), history_of({{1, 3}}));
  save(after, at(6, -1));
  EXPECT_EQ(steps(), (Steps{1, 3, 6}));
}

TEST_F(KeptBests, AChangeToRunLetsAllGoButTheNewest) {
  {
    RunSaver before = saver(kStage);
    begin(before);
    for (const Position& position : {at(5, 5), end_at(6, 5)}) save(before, position);
    before.next_stage();
    save(before, at(7, -1));
  }
  ASSERT_EQ(steps(), (Steps{1, 3, 5, 6, 7}));
  RunSaver after = resumed(kRun, at(7, -1), history_of({{1, 3}, {5, 6}}));
  save(after, at(8, -1));
  EXPECT_EQ(steps(), (Steps{3, 5, 6, 8}));
  save(after, at(9, 9));
  EXPECT_EQ(steps(), (Steps{3, 6, 8, 9}));
}

TEST_F(KeptBests, AChangeToRunAfterTheStagesBestLetsTheEarlierGo) {
  {
    RunSaver before = saver(kStage);
    begin(before);
    for (const Position& position : {at(5, 5), at(6, 5)}) save(before, position);
  }
  ASSERT_EQ(steps(), (Steps{1, 3, 5, 6}));
  RunSaver after = resumed(kRun, at(6, 5), history_of({{1, 3}}));
  save(after, at(7, 5));
  EXPECT_EQ(steps(), (Steps{3, 5, 7}));
}

TEST_F(KeptBests, AChangeToStageKeepsThoseThatStand) {
  {
    RunSaver before = saver(kRun);
    begin(before);
  }
  RunSaver after = resumed(kStage, at(4, -1), history_of({{1, 3}}));
  for (const Position& position : {at(5, 5), at(6, 5)}) save(after, position);
  EXPECT_EQ(steps(), (Steps{1, 3, 5, 6}));
}

// A best that was never saved replaces none. This occurs in a fork, or if checkpoint.best was off until this resume.
TEST_F(KeptBests, OnlyOneThatStandsReplaces) {
  {
    RunSaver before = saver(kRun);
    begin(before);
  }
  RunSaver after = resumed(kRun, at(4, -1), history_of({{1, 3}}));
  after.next_stage();
  save(after, end_at(6, 5));  // 5 was never saved
  EXPECT_EQ(steps(), (Steps{1, 3, 4, 6}));
  RunSaver again = resumed(kRun, end_at(6, 5), history_of({{1, 3}, {5, 6}}));
  again.next_stage();
  save(again, at(7, -1));
  EXPECT_EQ(steps(), (Steps{1, 3, 6, 7}));
  save(again, at(8, 8));
  EXPECT_EQ(steps(), (Steps{3, 6, 7, 8}));
}

}  // namespace
}  // namespace tessera
