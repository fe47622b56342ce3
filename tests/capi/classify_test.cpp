// examples/c/classify.c, compiled as C99, as a reader runs it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/capi/networks.h"
#include "tests/support/python.h"

namespace tessera::capi::testing {
namespace {

using tessera::testing::output_of;

TEST(CClassify, PrintsTheClassWithTheGreatestScore) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "image").string();
  Buffer<std::uint8_t> pixels({1, 28, 28, 1}, 0);
  for (std::size_t i = 0; i < pixels.values.size(); ++i) pixels.values[i] = static_cast<std::uint8_t>(i * 37);
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(pixels.values.data()), 784);
  const std::vector<float> scores = scores_of(Loaded(dense_run()), pixels);
  const auto best = std::ranges::max_element(scores) - scores.begin();
  const std::string said = output_of(std::string(TESSERA_CLASSIFY) + " " + dense_run() + " " + file);
  EXPECT_TRUE(said.starts_with("class " + std::to_string(best) + ", score ")) << said;
  EXPECT_EQ(output_of(std::string(TESSERA_CLASSIFY) + " " + folder.path().string() + "/none " + file + " 2>&1"),
            "classify: tessera_load: there is no " + folder.path().string() +
                "/none; needs a run folder, the folder of one of its checkpoints, or a file of tessera compress or "
                "tessera export --layout tessera\n"
                "exit status 256");
}

}  // namespace
}  // namespace tessera::capi::testing
