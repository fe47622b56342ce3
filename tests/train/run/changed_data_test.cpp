// A checkpoint remembers the training data: a run does not go on with files in which a bit changed.
#include <gtest/gtest.h>

#include <random>

#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"
#include "train/config/yaml.h"
#include "train/run/run_state.h"

namespace tessera {
namespace {

constexpr std::size_t kSamples = 12;
constexpr std::size_t kSide = 6;

std::string idx_file(const std::vector<std::size_t>& sizes, const std::string& data) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const std::size_t size : sizes) bytes += std::string(3, '\0') + static_cast<char>(size);
  return bytes + data;
}

class ChangedData : public ::testing::Test {
 protected:
  ChangedData() {
    for (std::size_t i = 0; i < kSamples * kSide * kSide; ++i) pixels_ += static_cast<char>(i * 37);
    for (std::size_t i = 0; i < kSamples; ++i) labels_ += static_cast<char>(i % 3);
    write("train", pixels_, labels_);
    write("t10k", pixels_, labels_);
  }

  void write(const std::string& stem, const std::string& pixels, const std::string& labels) const {
    const auto path = [&](const char* kind) { return folder_.path() / (stem + kind); };
    write_file_atomically(real_vfs(), path("-images-idx3-ubyte"), idx_file({kSamples, kSide, kSide}, pixels));
    write_file_atomically(real_vfs(), path("-labels-idx1-ubyte"), idx_file({kSamples}, labels));
  }
  RunState run() const {
    const std::string text =
        str("version: 1\nname: x\nthreads: {compute: 1, loader: 0}\ndata: {name: mnist, root: ", folder_.path().string(),
            ", batch: 4, val: 0}\nmodel: {name: layers, layers: [flatten, ",
            "{linear: {out: 10, name: fc}}]}\nstages: [{name: s, train: 2e}]\n");
    const ExperimentConfig config = parse_experiment(parse_yaml(text, "test.yaml")).config;
    return {config, load_data(config.data, 1)};
  }
  static Checkpoint save(const RunState& state) {
    return {.step = 1, .folder = "run/step-1", .parts = state.parts(), .manifest = state.manifest(), .damaged = {}};
  }

  TemporaryFolder folder_;
  std::string pixels_;
  std::string labels_;
};

TEST_F(ChangedData, EveryChangedBitStopsAResumedRun) {
  RunState straight = run();
  straight.start(initial_model(real_vfs(), straight.config(), straight.data()));
  straight.prepare_stage();
  straight.begin_training();
  straight.step();
  const Checkpoint checkpoint = save(straight);
  EXPECT_NO_THROW(run().load(checkpoint));
  std::mt19937 random(2);
  for (int i = 0; i < 40; ++i) {
    std::string pixels = pixels_;
    std::string labels = labels_;
    std::string& changed = i % 4 == 0 ? labels : pixels;
    const std::size_t at = random() % changed.size();
    changed[at] = static_cast<char>(changed[at] ^ (i % 4 == 0 ? 4 : 1 << random() % 8));  // labels stay below 10
    write("train", pixels, labels);
    try {
      run().load(checkpoint);
      FAIL() << "goes on with byte " << at << " changed";
    } catch (const IoError& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with("run/step-1: the training data changed since the run began: fingerprint ")) << message;
      EXPECT_NE(message.find(", checkpoint has " + checkpoint.manifest.at("data").as_string()), std::string::npos) << message;
    }
  }
}

TEST_F(ChangedData, SoDoOtherTestImages) {
  RunState straight = run();
  straight.start(initial_model(real_vfs(), straight.config(), straight.data()));
  Checkpoint checkpoint = save(straight);
  std::string other = pixels_;
  other[0] = static_cast<char>(other[0] ^ 1);
  write("t10k", other, labels_);
  const std::string message = message_of<IoError>([&] { run().load(checkpoint); });
  EXPECT_TRUE(message.starts_with("run/step-1: the test data changed since the run began: fingerprint ")) << message;
  checkpoint.manifest.erase("data_test");  // as older programs wrote it, which did not check the test data
  EXPECT_NO_THROW(run().load(checkpoint));
}

}  // namespace
}  // namespace tessera
