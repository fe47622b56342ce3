// Which checkpoints a run keeps after a resume.
#include "train/run/run_saver.h"

#include <gtest/gtest.h>

#include "tests/train/checkpoint/store_fixture.h"

namespace tessera {
namespace {

// As Position: the best step so far is `best`, -1 = none.
Position at(std::int64_t step, std::int64_t best) { return {.global_step = step, .best_step = best}; }

class RunSaverPins : public CheckpointStoreTest {
 protected:
  using Steps = std::vector<std::int64_t>;

  RunSaver saver(bool best) { return RunSaver(real_vfs(), folder, {.keep = 1, .best = best, .async = false}, lock); }
  static void save(RunSaver& saver, const Position& position) {
    saver.save(position, parts_at(position.global_step), extra_at(position.global_step));
  }
  // From the newest checkpoint that is intact, which has to be that of `position`.
  RunSaver resumed(bool best, const Position& position) {
    RunSaver resumed = saver(best);
    const Checkpoint checkpoint = resumed.store().load_latest();
    EXPECT_EQ(checkpoint.step, position.global_step);
    resumed.resumed_from(checkpoint, position);
    return resumed;
  }
  Steps steps() { return reader().steps(); }
};

// Step 3 is the best, so that saving it gives up the best before it, 1; a part of 3 is damaged, and the run goes on from 2.
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

}  // namespace
}  // namespace tessera
