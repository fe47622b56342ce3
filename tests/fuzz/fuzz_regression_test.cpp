// Replays the fuzzers' seeds and findings: no input may make an entry function throw.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/targets.h"

namespace tessera::fuzz {
namespace {

namespace fs = std::filesystem;

struct Input {
  std::string name;
  std::string bytes;
};

void add_folder(const fs::path& folder, std::vector<Input>& inputs) {
  if (!fs::exists(folder)) return;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    inputs.push_back({entry.path().string(), {std::istreambuf_iterator<char>(in), {}}});
  }
}

std::vector<Input> inputs_of(const Target& target) {
  std::vector<Input> inputs;
  for (const std::string& seed : target.seeds()) inputs.push_back({"generated seed", seed});
  const fs::path root = TESSERA_FUZZ_FOLDER;
  add_folder(root / "seeds" / target.name, inputs);
  add_folder(root / "findings" / target.name, inputs);
  if (target.name == "experiment") add_folder(TESSERA_CONFIGS, inputs);
  std::ranges::sort(inputs, {}, &Input::name);
  return inputs;
}

void replay(const Target& target, const std::string& bytes, const std::string& name) {
  try {
    target.run(bytes);
  } catch (const std::exception& error) {
    ADD_FAILURE() << target.name << ": " << name << ": " << error.what();
  }
}

class FuzzRegression : public ::testing::TestWithParam<Target> {
 protected:
  static void SetUpTestSuite() { setenv("TESSERA_DATA", "/data", 0); }  // the configs need it
};

TEST_P(FuzzRegression, SeedsAndFindings) {
  const std::vector<Input> inputs = inputs_of(GetParam());
  EXPECT_FALSE(inputs.empty());
  for (const Input& input : inputs) replay(GetParam(), input.bytes, input.name);
}

// The most productive mutations. A fuzzer tries them first; here they also run in builds without a fuzzer.
TEST_P(FuzzRegression, CutAndFlippedSeeds) {
  for (const Input& input : inputs_of(GetParam())) {
    const std::size_t step = 1 + input.bytes.size() / 400;
    for (std::size_t at = 0; at < input.bytes.size(); at += step) {
      replay(GetParam(), input.bytes.substr(0, at), input.name + " cut at " + std::to_string(at));
      std::string flipped = input.bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
      replay(GetParam(), flipped, input.name + " flipped at " + std::to_string(at));
    }
  }
}

// A fuzzer whose seeds are refused hardly gets past the first checks.
TEST(FuzzSeeds, OfNetworksAreAccepted) {
  const std::vector<std::string> seeds = network_seeds();
  EXPECT_FALSE(seeds.empty());
  for (std::size_t i = 0; i < seeds.size(); ++i) EXPECT_TRUE(accepts_network(seeds[i])) << "seed " << i;
  EXPECT_FALSE(accepts_network(""));
  EXPECT_FALSE(accepts_network(seeds.front().substr(0, seeds.front().size() - 1)));
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzRegression, ::testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tessera::fuzz
