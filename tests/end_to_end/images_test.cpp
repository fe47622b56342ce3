// A user's images, from `init` and `data check` to a table, as in the README.
#include <gtest/gtest.h>

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/tiny_experiment.h"
#include "tests/support/image_files.h"
#include "tests/support/scopes.h"

namespace tessera::testing {
namespace {

constexpr const char* kBlocks = R"(
deterministic: true
data:
  name: image-folder
  root: photos
  val: 0.25
  resize: 20
  crop: 16
  batch: 6
  augment: [{resized_crop: 0.3}, {flip: horizontal}]
optimizer: {name: sgd, lr: 0.05}
stages:
  - {name: dense, train: 3e}
  - {name: tucker, factorise: {keep: always, layers: conv2, ranks: {out: 4, in: 4}}, train: 1e}
checkpoint: {every: 2s, keep: 2}
log_every: 1
report: {latency: {batch: [1], repeats: 5}}
)";

class Images : public ::testing::Test {
 protected:
  void SetUp() override {
    write_bytes(file_, tiny_experiment(kBlocks, {.threads = "{compute: 1, loader: 2}", .classes = 2}));
    for (int i = 0; i < 12; ++i) {
      add(str("photos/train/cat/", i, ".jpg"), 40 + i, i % 2 == 0);
      add(str("photos/train/dog/", i, ".png"), 200 + i, false);
    }
    for (int i = 0; i < 4; ++i) {
      add(str("photos/test/cat/", i, ".jpg"), 60 + i, true);
      add(str("photos/test/dog/", i, ".png"), 220 + i, false);
    }
  }

  // Images of cats are dark, images of dogs are bright.
  void add(const std::string& name, int value, bool progressive) {
    Bytes pixels = pattern(24, 30);
    for (std::uint8_t& byte : pixels) byte = static_cast<std::uint8_t>(value + byte % 30);
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    write_bytes(folder_ / name, name.ends_with(".png")
                                    ? encode_png(24, 30, pixels)
                                    : encode_jpeg(24, 30, pixels, {.quality = 90, .progressive = progressive}));
  }

  void expect(const std::vector<std::string>& arguments, int code, const std::string& part) {
    expect_outcome(run_program(arguments), code, part);
  }

  static void cut(const std::string& file) { std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2); }

  // A run that fails at an image that was broken from the beginning but first read in training, after a checkpoint.
  std::string broken_run(const std::string& image) {
    const std::string run = folder_ / "runs/tiny/1";
    broken_ = folder_ / image;
    cut(broken_);
    const Outcome ended = run_program({"train", file_, "--runs", folder_ / "runs", kMean, kStd, "checkpoint.async=false"});
    EXPECT_EQ(ended.exit_code, 1) << ended.output;
    expect_in(ended.output, broken_ + ": broken JPEG");
    expect_in(ended.output, "; tessera resume " + run + " data.on_bad_image=skip goes on without it");
    EXPECT_NE(newest_checkpoint(run), "") << "the image came before the first checkpoint: take another one";
    return run;
  }
  std::string copy(const std::string& run, const std::string& name) const {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    std::filesystem::copy(run, folder_ / name, std::filesystem::copy_options::recursive);
    return folder_ / name;
  }
  static void expect_same_end(const std::string& run, const std::string& other) {
    EXPECT_EQ(read_bytes(run + "/metrics.jsonl"), read_bytes(other + "/metrics.jsonl"));
    EXPECT_EQ(read_bytes(newest_checkpoint(run) + "/model.safetensors"),
              read_bytes(newest_checkpoint(other) + "/model.safetensors"));
  }

  static constexpr const char* kHeldOut = "photos/train/cat/7.jpg";
  static constexpr const char* kTrained = "photos/train/cat/9.jpg";  // in the third step
  static constexpr const char* kMean = "data.mean=[0.5, 0.5, 0.5]";
  static constexpr const char* kStd = "data.std=[0.25, 0.25, 0.25]";
  TemporaryFolder folder_;
  std::string broken_;  // the image that broken_run() cut
  std::string file_ = folder_ / "pets.yaml";
  const VariableScope cache_{"TESSERA_CACHE", folder_ / "cache"};
};

TEST_F(Images, AreCheckedTrainedAndTabulated) {
  int manifests = 0;
  expect({"data", "check", file_}, 0, "cat           9       3       4\n");
  expect({"plan", file_}, 0, "image-folder, 18 training, 6 validation, 8 test samples of [1, 16, 16, 3]");
  expect({"train", file_, "--runs", folder_ / "runs"}, 0, "");
  expect({"table", folder_ / "runs/tiny/1"}, 0, "tucker");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "runs/tiny/1/checkpoints")) {
    if (entry.path().filename() != "MANIFEST.json") continue;
    EXPECT_NE(read_bytes(entry.path()).find(R"("classes")"), std::string::npos) << entry.path();
    ++manifests;
  }
  EXPECT_GE(manifests, 2);
}

TEST_F(Images, AKilledRunEndsWithTheSameBytes) {
  expect({"train", file_, "--runs", folder_ / "straight"}, 0, "");
  const Outcome killed = run_program({"train", file_, "--runs", folder_ / "killed"}, {"TESSERA_KILL_AT=step:5"});
  ASSERT_EQ(killed.exit_code, 128 + 9) << killed.output;
  expect({"resume", folder_ / "killed/tiny/1", "threads.loader=1"}, 0, "");
  EXPECT_EQ(read_bytes(folder_ / "killed/tiny/1/metrics.jsonl"), read_bytes(folder_ / "straight/tiny/1/metrics.jsonl"));
}

// A run goes on with its images in a moved folder, but not with other images.
TEST_F(Images, AMovedFolderIsTheSameData) {
  expect({"train", file_, "--runs", folder_ / "straight"}, 0, "");
  const std::string run = folder_ / "killed/tiny/1";
  const Outcome killed =
      run_program({"train", file_, "--runs", folder_ / "killed", "checkpoint.async=false"}, {"TESSERA_KILL_AT=step:5"});
  ASSERT_EQ(killed.exit_code, 128 + 9) << killed.output;
  std::filesystem::rename(folder_ / "photos", folder_ / "moved");
  expect({"resume", run}, 1, "photos/train");
  const std::string there = "data.root=" + (folder_ / "moved");
  expect({"fork", run, "--at", "4", "--runs", folder_ / "forks", there}, 0, "");
  expect({"resume", run, there}, 0, "");
  const std::string metrics = read_bytes(folder_ / "straight/tiny/1/metrics.jsonl");
  EXPECT_EQ(read_bytes(run + "/metrics.jsonl"), metrics);
  EXPECT_EQ(read_bytes(folder_ / "forks/tiny/1/metrics.jsonl"), metrics);
  ASSERT_EQ(run_program({"train", file_, "--runs", folder_ / "other", there}, {"TESSERA_KILL_AT=step:5"}).exit_code, 128 + 9);
  add("else/train/cat/1.jpg", 99, false);
  add("else/train/dog/1.jpg", 199, false);
  add("else/test/cat/1.jpg", 99, false);
  add("else/test/dog/1.jpg", 199, false);
  expect({"resume", folder_ / "other/tiny/1", "data.root=" + (folder_ / "else")}, 1,
         "the training data changed since the run began");
}

TEST_F(Images, ResumeRefusesChangedImages) {
  ASSERT_EQ(run_program({"train", file_, "--runs", folder_ / "runs"}, {"TESSERA_KILL_AT=step:5"}).exit_code, 128 + 9);
  add("photos/train/cat/3.jpg", 99, false);
  expect({"resume", folder_ / "runs/tiny/1"}, 1, "the training data changed since the run began");
}

TEST_F(Images, ResumeRefusesAChangedValidationFolder) {
  add("photos/held/cat/1.jpg", 41, false);
  add("photos/held/dog/1.jpg", 141, false);
  ASSERT_EQ(run_program({"train", file_, "--runs", folder_ / "runs", "data.val=held"}, {"TESSERA_KILL_AT=step:5"}).exit_code,
            128 + 9);
  add("photos/held/cat/2.jpg", 42, false);
  expect({"resume", folder_ / "runs/tiny/1"}, 1, "the validation data changed since the run began");
  std::filesystem::remove(folder_ / "photos/held/cat/2.jpg");
  expect({"resume", folder_ / "runs/tiny/1"}, 0, "");
}

TEST_F(Images, DataCheckFailsOnLeaksAndBrokenFiles) {
  std::filesystem::copy_file(folder_ / "photos/train/cat/1.jpg", folder_ / "photos/test/cat/same.jpg");
  write_bytes(folder_ / "photos/train/dog/broken.png", read_bytes(folder_ / "photos/train/dog/1.png").substr(0, 100));
  expect({"data", "check", file_}, 1, "the same image in several splits:\n");
  const Outcome json = run_program({"data", "check", file_, "--json"});
  EXPECT_EQ(json.exit_code, 1);
  const Value report = parse_json(json.output, "report");
  ASSERT_EQ(report.at("bad").as_list().size(), 1u);
  EXPECT_EQ(report.at("bad").as_list()[0].at("path").as_string(), folder_ / "photos/train/dog/broken.png");
  EXPECT_EQ(report.at("duplicates").as_list().size(), 1u);
  expect({"train", file_, "--runs", folder_ / "runs"}, 2, "broken.png: broken PNG: the file ends early");
  expect({"train", file_, "--runs", folder_ / "runs", "data.on_bad_image=skip"}, 0, "leaves out 1 file");
}

// `data check` reports a truncated image. Before training it is found only if the statistics are measured and read it.
TEST_F(Images, ATruncatedJpegIsFoundBeforeTrainingByWhatReadsIt) {
  cut(folder_ / kHeldOut);
  expect({"validate", file_}, 0, "ok");
  expect({"data", "check", file_}, 1, "cat/7.jpg: broken JPEG");
  cut(folder_ / kTrained);
  expect({"data", "check", file_}, 1, "cat/9.jpg: broken JPEG");
  expect({"validate", file_}, 2, "cat/9.jpg: broken JPEG");
  expect({"train", file_, "--runs", folder_ / "runs"}, 2, "cat/9.jpg: broken JPEG");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
  expect({"validate", file_, kMean, kStd}, 0, "ok");
}

TEST_F(Images, ARunThatMetABrokenImageGoesOnWithoutIt) {
  const std::string run = broken_run(kTrained);
  const std::string other = copy(run, "other/1"), killed = copy(run, "killed/1"), gone = copy(run, "gone/1");
  expect({"resume", run, "data.on_bad_image=skip"}, 0, "photos/train: goes on without 1 file:\n  " + broken_);
  expect_in(read_bytes(run + "/config.resolved.yaml"), "train/cat/" + std::filesystem::path(broken_).filename().string());
  expect_in(read_bytes(run + "/train.log"), "goes on without " + broken_ + ": broken JPEG");
  expect({"eval", run, "--split", "train"}, 0, "17 samples");
  expect({"table", run}, 0, "tucker");

  ASSERT_EQ(run_program({"resume", killed, "data.on_bad_image=skip"}, {"TESSERA_KILL_AT=step:7"}).exit_code, 128 + 9);
  expect({"resume", killed, "threads.loader=1"}, 0, "");
  expect_same_end(killed, run);

  std::filesystem::remove(broken_);
  expect({"resume", gone}, 1, broken_ + ", which ended this run, is gone: tessera resume " + gone + " data.on_bad_image=skip");
  expect({"resume", gone, "data.on_bad_image=skip"}, 0, "");
  expect_same_end(gone, run);

  std::filesystem::remove(folder_ / "photos/train/dog/3.png");
  expect({"resume", other, "data.on_bad_image=skip"}, 1,
         "beside the images that cannot be decoded, the training data changed since the run began");
  EXPECT_EQ(read_bytes(other + "/config.resolved.yaml").find("left_out"), std::string::npos);
}

TEST_F(Images, ARunThatCannotEvaluateAnImageGoesOnWithoutIt) {
  const std::string run = broken_run(kHeldOut);
  expect({"resume", run, "data.on_bad_image=skip"}, 0, "photos/train: goes on without 1 file:\n  " + broken_);
  expect({"eval", run, "--split", "val"}, 0, "5 samples");
}

TEST_F(Images, DataCheckRefusesBadInput) {
  expect({"data", "check", file_, "data.root=elsewhere"}, 2, str(":3: data: ", folder_ / "elsewhere/train", ": no such folder"));
  expect({"data", "check", file_, "data.crops=3"}, 2, "data.crops: unknown key; did you mean 'crop'?");
  expect({"data", "check", folder_ / "absent.yaml"}, 2, "absent.yaml");
  expect({"data"}, 2, "");
}

TEST_F(Images, InitFitsTheBatchToFewImages) {
  expect({"init", folder_ / "photos", "--from", "image-folder-tucker", "--root", folder_ / "photos"}, 0, "");
  EXPECT_NE(read_bytes(folder_ / "photos.yaml").find("batch: 16 "), std::string::npos);
  expect({"validate", folder_ / "photos.yaml", "data.batch=32"}, 2,
         "data.batch: is 32, but only 22 samples are left to train on; lower it, or set data.drop_last: false");
}

TEST_F(Images, InitWritesAFileThatPasses) {
  for (int i = 12; i < 32; ++i) add(str("photos/train/cat/", i, ".png"), 40 + i, false);  // enough for a batch of 32
  expect({"init", folder_ / "photos", "--from", "image-folder-tucker", "--root", folder_ / "photos"}, 0,
         "next: tessera data check");
  expect({"data", "check", folder_ / "photos.yaml"}, 0, "clean");
  expect({"validate", folder_ / "photos.yaml"}, 0, "ok");
  std::filesystem::rename(folder_ / "photos", folder_ / "images");
  expect({"init", folder_ / "image-folder-tucker"}, 0, "image-folder-tucker.yaml");
  expect({"validate", folder_ / "image-folder-tucker.yaml"}, 0, "ok");
  expect({"init", folder_ / "x", "--from", "image"}, 2,
         "--from: unknown template 'image'; known: tucker, image-folder-tucker, gpt-text, torch-tucker");
  expect({"init", folder_ / "x", "--root", folder_ / "images"}, 2, "--root: template tucker reads no files");
  expect({"init", folder_ / "x", "--from", "image-folder-tucker", "--root", folder_ / "none"}, 2, "/none/train: no such folder");
}

TEST_F(Images, InitStartsFromWeightsOfPyTorch) {
  const auto init = [&](const std::string& name, const std::string& weights) {
    return std::vector<std::string>{"init",   folder_ / name,     "--from",    "torch-tucker",
                                    "--root", folder_ / "photos", "--weights", folder_ / weights};
  };
  expect(init("mine", "none.safetensors"), 2, "--weights: no file ");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "mine.yaml"));
  write_bytes(folder_ / "net.safetensors", "no weights");
  expect(init("mine", "net.safetensors"), 0, "next: tessera data check");
  EXPECT_NE(read_bytes(folder_ / "mine.yaml").find("classes: 2, weights: \"net.safetensors\"}"), std::string::npos);
  expect({"data", "check", folder_ / "mine.yaml"}, 0, "clean");
  expect({"init", folder_ / "x", "--weights", folder_ / "net.safetensors"}, 2, "--weights: template tucker has none");
}

}  // namespace
}  // namespace tessera::testing
