#include "bench/loader_workload.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "bench/core_scope.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"
#include "tests/train/data/image_tree.h"

namespace tessera::bench {
namespace {

// Four images, of 12x15 and 15x12. Their red is 0 and 1 in the first class, and 128 and 129 in the second.
class LoaderWorkloadTest : public ::testing::Test {
 protected:
  void SetUp() override { tree_.add_split("train", 2); }

  testing::ImageTree tree_;
};

TEST_F(LoaderWorkloadTest, ItsValuesAreNormalisedPlanesOfTheImagesInOrder) {
  const LoaderWorkload workload(tree_.root(), {.frame = "evaluation", .threads = 1, .batch = 2});
  EXPECT_EQ(workload.images(), 4);
  const std::vector<float> values = workload.values(3);
  ASSERT_EQ(values.size(), 3u * 3 * 224 * 224);
  const std::size_t image = 3 * 224 * 224;
  for (const auto& [index, red] : {std::pair{0, 0}, std::pair{1, 1}, std::pair{2, 128}}) {
    const float expected = static_cast<float>((red / 255.0 - 0.485) / 0.229);
    for (const std::size_t pixel : {0, 224 * 224 - 1}) {
      EXPECT_FLOAT_EQ(values[static_cast<std::size_t>(index) * image + pixel], expected) << index;
    }
  }
}

TEST_F(LoaderWorkloadTest, AnEpochReadsEveryFile) {
  for (const char* const file : {"train/cat/0.png", "train/dog/1.png"}) {
    for (const char* const frame : {"training", "evaluation"}) {
      const LoaderWorkload workload(tree_.root(), {.frame = frame, .threads = 2, .batch = 2});
      EXPECT_GT(workload.run(), 0);
      const std::string hidden = tree_.path("hidden.png");
      std::filesystem::rename(tree_.path(file), hidden);
      EXPECT_THROW(workload.run(), IoError) << frame << ' ' << file;
      std::filesystem::rename(hidden, tree_.path(file));
    }
  }
}

TEST_F(LoaderWorkloadTest, RefusesOtherFramesAndPartsOfABatch) {
  const auto message = [&](const LoaderCase& timed) {
    return message_of<ConfigError>([&] { LoaderWorkload(tree_.root(), timed); });
  };
  EXPECT_EQ(message({.frame = "test", .threads = 1, .batch = 2}), "frame is 'test'; needs training or evaluation");
  EXPECT_EQ(message({.frame = "training", .threads = 1, .batch = 3}), "4 images make no whole batches of 3");
}

cpu_set_t allowed() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  EXPECT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  return cores;
}

TEST(CoreScope, HoldsForWhatItsThreadStartsUntilItsEnd) {
  const cpu_set_t before = allowed();
  {
    const CoreScope one(1);
    std::thread([] {
      const cpu_set_t cores = allowed();
      EXPECT_EQ(CPU_COUNT(&cores), 1);
    }).join();
    EXPECT_THROW(CoreScope(2), ConfigError);
  }
  const cpu_set_t after = allowed();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(CoreScope, RefusesMoreCoresThanThereAre) {
  const cpu_set_t cores = allowed();
  EXPECT_EQ(message_of<ConfigError>([&] { CoreScope(CPU_COUNT(&cores) + 1); }),
            str("needs ", CPU_COUNT(&cores) + 1, " cores; this program may use ", CPU_COUNT(&cores)));
  EXPECT_THROW(CoreScope(0), ConfigError);
}

}  // namespace
}  // namespace tessera::bench
