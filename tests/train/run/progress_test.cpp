#include "train/run/progress.h"

#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <string>

#include "tests/core/io/temporary_folder.h"

namespace tessera::testing {
namespace {

// The last step is always drawn.
std::string bar_at_the_end(bool terminal, std::optional<double> loss) {
  const TemporaryFolder folder;
  std::ostringstream out;
  Progress progress(&out, terminal, folder / "progress.log");
  progress.begin("dense", 0, 1, 32, "img/s");
  progress.step(1, loss);
  return out.str();
}

TEST(Progress, TheBarHasALossOnceThereIsOne) {
  const std::string without = bar_at_the_end(true, std::nullopt);
  EXPECT_NE(without.find("1/1  "), std::string::npos) << without;
  EXPECT_EQ(without.find("loss"), std::string::npos) << without;
  const std::string with = bar_at_the_end(true, 2.25);
  EXPECT_NE(with.find("1/1  loss 2.2500  "), std::string::npos) << with;
}

TEST(Progress, ThereIsNoBarWithoutATerminal) { EXPECT_EQ(bar_at_the_end(false, 2.25), ""); }

}  // namespace
}  // namespace tessera::testing
