// All mistakes of an experiment file are reported at once, each with its place, before anything is written.
#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/end_to_end/program.h"

namespace tessera::testing {
namespace {

constexpr const char* kMistakes = R"(version: 1
name: wrong
sead: 1
precision: f33
log_every: 0
data: {name: glyphs, batch: 64, batch: 32, vall: 0.1, augment: [{pad_crop: two}, {flipp: horizontal}], crop: 8}
model: {name: lenet5, clases: 10, in_channels: one}
optimizer: {name: sgd, lr: -0.1, momentun: 0.9, nesterov: 1}
stages:
  - {name: dense, train: 10, trian: 2e, optimizer: {weight_decay: -1}}
  - name: tucker
    factorise: {layers: "conv*", ranks: {maks: 0.4, energy: 2}, fromat: tucker2}
    name: again
    optimizer: {momentum: 1.5, lr: 0.1, lr: 0.2}
report: {latency: {batch: [0, x], repeat: 5, repeats: 1}}
checkpoint: 3
)";

// The messages without the leading file name. FILE stands for the file's name inside them.
constexpr const char* kReported[] = {
    "3:1: sead: unknown key; did you mean 'seed'?",
    "4:12: precision: 'f33' is not a choice; did you mean 'f32'?; choices: f32 tf32 bf16 f16",
    "5:12: log_every: is 0; must be at least 1",
    "6:33: data.batch: repeated key; first at FILE:6:22",
    "6:44: data.vall: unknown key; did you mean 'val'?",
    "6:76: data.augment[0].pad_crop: expected an integer, found text 'two'",
    "6:83: data.augment[1].flipp: unknown key; did you mean 'flip'?",
    "6:104: data.crop: belongs to name: image-folder",
    "7:23: model.clases: unknown key; did you mean 'classes'?",
    "7:48: model.in_channels: expected an integer, found text 'one'",
    "8:28: optimizer.lr: is -0.1; must be at least 0",
    "8:34: optimizer.momentun: unknown key; did you mean 'momentum'?",
    "8:59: optimizer.nesterov: expected true or false, found 1",
    "10:26: stages[0].train: expected a length of training, found 10; write 10e, 5000s or 20%",
    "10:30: stages[0].trian: unknown key; did you mean 'train'?",
    "10:67: stages[0].optimizer.weight_decay: is -1; must be at least 0",
    "12:42: stages[1].factorise.ranks.maks: unknown key; did you mean 'macs'?",
    "12:61: stages[1].factorise.ranks.energy: is 2; must be in (0, 1]",
    "12:65: stages[1].factorise.fromat: unknown key; did you mean 'format'?",
    "13:5: stages[1].name: repeated key; first at FILE:11:5",
    "14:27: stages[1].optimizer.momentum: is 1.5; must be in [0, 1)",
    "14:41: stages[1].optimizer.lr: repeated key; first at FILE:14:32",
    "15:28: report.latency.batch[0]: is 0; must be at least 1",
    "15:31: report.latency.batch[1]: expected an integer, found text 'x'",
    "15:35: report.latency.repeat: unknown key; did you mean 'repeats'?",
    "15:55: report.latency.repeats: is 1; must be at least 5",
    "16:13: checkpoint: expected a block, found 3",
};

class ConfigErrors : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(file_, kMistakes); }

  void expect_all(const Outcome& outcome) const {
    EXPECT_EQ(outcome.exit_code, 2);
    std::string expected;
    for (const char* line : kReported) expected += file_ + ":" + line + "\n";
    for (std::size_t at = expected.find("FILE"); at != std::string::npos; at = expected.find("FILE")) {
      expected.replace(at, 4, file_);
    }
    EXPECT_EQ(outcome.output, expected);
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "wrong.yaml";
};

TEST_F(ConfigErrors, ValidateReportsAllAtOnce) { expect_all(run_program({"validate", file_})); }

TEST_F(ConfigErrors, TrainReportsAllAtOnceAndMakesNoRunFolder) {
  expect_all(run_program({"train", file_, "--runs", folder_ / "runs"}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

TEST_F(ConfigErrors, AnOverrideIsMarkedAsSuch) {
  write_bytes(file_, "version: 1\nname: x\ndata: {name: glyphs}\nmodel: {name: lenet5}\nstages: [{name: a, train: 1e}]\n");
  const Outcome outcome = run_program({"validate", file_, "optimizer.momentun=0.5"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.output, "command line: optimizer.momentun: unknown key; did you mean 'momentum'?\n");
}

TEST_F(ConfigErrors, AFileThatIsNoYamlNamesThePlace) {
  write_bytes(file_, "version: 1\nname: [x\n");
  const Outcome outcome = run_program({"validate", file_});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.output, file_ + ":2:7: the bracket that opens here is never closed\n");
}

TEST_F(ConfigErrors, AMissingFileIsBadInput) {
  const Outcome outcome = run_program({"validate", folder_ / "none.yaml"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.output, folder_ / "none.yaml" + std::string(": cannot be read: No such file or directory\n"));
}

}  // namespace
}  // namespace tessera::testing
