// Exports hand-made run folders: which events go where, and what is refused before anything is written.
#include "train/report/tensorboard/tensorboard.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"
#include "train/report/tensorboard/event_file.h"
#include "train/run/status.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMetrics =
    R"({"stage": "dense", "step": 2, "loss": 2.5, "lr": 0.1}
{"stage": "dense", "step": 4, "epoch": 1, "val_loss": 2.25, "val_accuracy": 0.5}
{"stage": "held", "step": 4, "admm": {"step": 1, "rho": 1, "layer": "conv2", "primal": 0.75}}
{"stage": "held", "step": 6, "loss": "nan", "lr": 0.05}
{"stage": "held", "step": 8, "lo)";

class TensorBoard : public ::testing::Test {
 protected:
  std::string run(const std::string& name, const std::string& metrics = kMetrics) const {
    const fs::path path = folder_ / name;
    fs::create_directories(path);
    write_file_atomically(real_vfs(), path / "config.resolved.yaml", "version: 1\nname: x\n");
    write_file_atomically(real_vfs(), path / "metrics.jsonl", metrics);
    write_file_atomically(real_vfs(), path / "timing.jsonl",
                          metrics.empty() ? "" : "{\"step\": 2, \"samples_per_second\": 64}\n");
    return path.string();
  }
  fs::path out() const { return folder_ / "out"; }
  void export_runs(const std::vector<std::string>& runs) const { export_tensorboard(real_vfs(), runs, out()); }
  std::string refusal(const std::vector<std::string>& runs) const {
    return message_of<ConfigError>([&] { export_runs(runs); });
  }
  std::string events(const std::string& run) const { return real_vfs().read_file(out() / run / kEventFileName); }
  std::size_t files() const {
    std::size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(out())) count += entry.is_directory() ? 0 : 1;
    return count;
  }

  TemporaryFolder folder_;
};

TEST_F(TensorBoard, HoldsEveryNumberAtItsStep) {
  export_runs({run("runs/x/1")});
  EventFile expected(0);
  expected.add_text("config.resolved.yaml", "    version: 1\n    name: x\n");
  expected.add_scalars(2, std::vector<EventScalar>{{"loss", 2.5}, {"lr", 0.1}, {"samples_per_second", 64}});
  expected.add_scalars(
      4, std::vector<EventScalar>{{"val_loss", 2.25}, {"val_accuracy", 0.5}, {"admm/rho", 1}, {"admm/primal", 0.75}});
  expected.add_scalars(6, std::vector<EventScalar>{{"loss", std::numeric_limits<double>::quiet_NaN()}, {"lr", 0.05}});
  EXPECT_EQ(events("x/1"), expected.bytes());
}

TEST_F(TensorBoard, ItsTimeIsThatOfTheStatus) {
  const std::string path = run("runs/x/1");
  RunStatus status;
  status.state = "finished";
  save_status(real_vfs(), path + "/status.json", status);
  export_runs({path});
  const EventFile expected(static_cast<double>(load_status(real_vfs(), path + "/status.json").time));
  EXPECT_TRUE(events("x/1").starts_with(expected.bytes()));
  write_file_atomically(real_vfs(), path + "/status.json", "{\"state\": 3}");
  EXPECT_NE(message_of<IoError>([&] { export_runs({path}); }).find("status.json: "), std::string::npos);
}

TEST_F(TensorBoard, ASecondExportTakesThePlaceOfTheFirst) {
  const std::string first = run("runs/x/1");
  export_runs({first, run("runs/x/2"), run("runs/y/1")});
  const std::string before = events("x/1");
  EXPECT_EQ(files(), 3u);
  run("runs/x/1", "{\"stage\": \"dense\", \"step\": 2, \"loss\": 1}\n");
  write_file_atomically(real_vfs(), out() / "x/1/export.unfinished", "of an export that was killed");
  export_runs({first + "/"});
  EXPECT_EQ(files(), 3u) << "those of other runs stay, and nothing is added";
  EXPECT_NE(events("x/1"), before);
  EXPECT_EQ(events("x/2"), before);
}

TEST_F(TensorBoard, NothingIsWrittenWhereARunCannotBe) {
  const std::string good = run("runs/x/1");
  EXPECT_EQ(refusal({good, run("runs/fresh/1", "")}), str("export: ", (folder_ / "runs/fresh/1"), " has logged no number yet"));
  const std::string twin = run("others/x/1");
  EXPECT_EQ(refusal({good, twin}), str("export: ", good, " and ", twin, " would both be ", (out() / "x/1").string(),
                                       "; export them into folders of their own"));
  EXPECT_EQ(refusal({good, good}).find(str("export: ", good, " and ", good, " would both be ")), 0u);
  EXPECT_EQ(refusal({good, folder_ / "runs"}), str(folder_ / "runs",
                                                   " is not a run folder: config.resolved.yaml is missing; give "
                                                   "runs/<name>/<n>"));
  EXPECT_EQ(message_of<IoError>([&] {
              export_runs({good, run("runs/bad/1", "{\"step\": 1\n")});
            }).find(str(folder_ / "runs/bad/1", "/metrics.jsonl:1: ")),
            0u);
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(TensorBoard, AFolderOfOtherThingsIsLeftAlone) {
  const std::string good = run("runs/x/1");
  const auto refused = [&](const fs::path& thing) {
    EXPECT_EQ(refusal({good}),
              str("export: ", thing.string(), " is no export for TensorBoard; give a folder that holds nothing else"));
    EXPECT_FALSE(fs::exists(out() / "x/1" / kEventFileName));
    fs::remove_all(out());
  };
  for (const char* const file : {"notes.txt", "y/notes.txt", "x/1/events.out.tfevents.other", "y/1/notes.txt"}) {
    fs::create_directories((out() / file).parent_path());
    write_file_atomically(real_vfs(), out() / file, "mine");
    refused(out() / file);
  }
  fs::create_directories(out() / "x/1/deeper");
  refused(out() / "x/1/deeper");
  const std::string event_file = str("x/1/", kEventFileName);
  for (const std::string& link : {std::string("x"), std::string("x/1"), event_file, std::string("x/1/export.unfinished")}) {
    fs::create_directories((out() / link).parent_path());
    fs::create_symlink("elsewhere", out() / link);
    refused(out() / link);
  }
  write_file_atomically(real_vfs(), out(), "a file");
  EXPECT_EQ(refusal({good}), str("export: ", out().string(), " is a file; name a folder"));
}

}  // namespace
}  // namespace tessera
