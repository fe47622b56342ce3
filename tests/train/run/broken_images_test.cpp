// An image breaks while a run trains on it. The run ends, says how to go on without it, and goes on from there.
#include "train/run/broken_images.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "core/config/read.h"
#include "core/rng.h"
#include "core/support/log.h"
#include "tests/support/message_of.h"
#include "tests/support/scopes.h"
#include "tests/train/data/image_tree.h"
#include "train/config/yaml.h"
#include "train/config/yaml_writer.h"
#include "train/run/amend.h"
#include "train/run/fork.h"
#include "train/run/saved_point.h"
#include "train/run/session.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Five steps an epoch. The normalisation statistics are measured.
constexpr const char* kExperiment = R"(version: 1
name: x
threads: {compute: 1, loader: 0}
data: {name: image-folder, root: ROOT, val: 0, resize: 10, crop: 8, batch: 4, on_bad_image: WHEN, augment: [{flip: horizontal}]}
model: {name: layers, layers: [flatten, {linear: {out: 2, name: fc}}]}
stages: [{name: s, train: 3e}]
checkpoint: {every: 2s, async: false}
log_every: 1
)";
const std::vector<std::string> kSkip{"data.on_bad_image=skip"};

class BrokenImages : public ::testing::Test {
 protected:
  void SetUp() override {
    images_.add_split("train", 10);
    images_.add_split("test", 3, 50);
    set_log_sink([this](LogLevel, std::string_view text) { warnings_ += str(text, '\n'); });
    // The last image of the first epoch, which is first read after the checkpoints of steps 2 and 4.
    const Experiment experiment = parse("error");
    const DataSplits data = load_inputs(real_vfs(), experiment.config).data;
    const auto seed = static_cast<std::uint64_t>(experiment.config.seed);
    for (const std::int64_t sample : random_permutation(RngStream(seed, "data", "order"), 0, data.train.size())) {
      order_.push_back(fs::relative(data.train.dataset->origin(sample), images_.root()).string());
    }
    late_ = order_.back();
    fs::copy_file(path(late_), path("whole.png"));
  }
  void TearDown() override { set_log_sink({}); }

  std::string path(const std::string& name) const { return images_.path(name); }
  void truncate(const std::string& name) const { fs::resize_file(path(name), 80); }

  // Starts a run that has read its data but has not trained yet.
  Session start(const std::string& when_bad) const {
    const Experiment experiment = parse(when_bad);
    return Session::start(real_vfs(), experiment, load_inputs(real_vfs(), experiment.config), to_yaml(experiment.resolved),
                          RunFolder::create(real_vfs(), path("runs"), "x"), {});
  }
  Experiment parse(const std::string& when_bad) const {
    std::string text = kExperiment;
    text.replace(text.find("ROOT"), 4, images_.root().string());
    text.replace(text.find("WHEN"), 4, when_bad);
    return parse_experiment(parse_yaml(text, "x.yaml"));
  }
  // A run that ends with an error at image late_.
  RunFolder broken_run(const std::string& when_bad = "error") {
    Session session = start(when_bad);
    const RunFolder folder = session.folder();
    truncate(late_);
    message_ = message_of<IoError>([&] { session.run(); });
    return folder;
  }
  static Session resume(const RunFolder& folder) { return Session::resume(real_vfs(), folder, {}); }
  RunFolder copy(const RunFolder& folder, const std::string& name) const {
    fs::copy(folder.path(), path(name), fs::copy_options::recursive);
    return RunFolder::open(real_vfs(), path(name));
  }
  static std::string text_of(const std::string& file) { return real_vfs().read_file(file); }
  static Value data_of(const RunFolder& folder) {
    return parse_experiment(load_yaml(folder.resolved_config())).resolved.at("data");
  }
  std::string go_on(const RunFolder& folder) const {
    return "tessera resume " + folder.path() + " data.on_bad_image=skip goes on without it";
  }

  testing::ImageTree images_;
  std::string message_;  // the error that ended broken_run()
  std::string warnings_;
  std::vector<std::string> order_;  // the images in the order of the first epoch
  std::string late_;  // the last of order_, first read after a checkpoint

 private:
  const testing::VariableScope cache_{"TESSERA_CACHE", ""};
};

TEST_F(BrokenImages, EndARunThatGoesOnWithoutThem) {
  const RunFolder folder = broken_run();
  EXPECT_EQ(message_, path(late_) + ": broken PNG: the file ends early; " + go_on(folder));
  EXPECT_NE(text_of(folder.log()).find("failed: " + message_), std::string::npos);
  const std::vector<BrokenImage> recorded = recorded_broken_images(real_vfs(), folder);
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].file, late_);
  EXPECT_GT(recorded[0].bytes, 80) << "as the run began with it";
  ASSERT_FALSE(fs::is_empty(folder.checkpoints()));
  const std::string again = message_of<IoError>([&] { resume(folder); });
  EXPECT_NE(again.find("; " + path(late_) + ", which ended this run, is another file than the run began with: " + go_on(folder)),
            std::string::npos)
      << again;
  const auto mean = load_at(real_vfs(), folder, "", "test").manifest.at("preprocessing").at("mean");
  amend_run(real_vfs(), folder, kSkip);
  const Value data = data_of(folder);
  EXPECT_EQ(data.at("on_bad_image").as_string(), "skip");
  EXPECT_EQ(read<LeftOutImage>(data.at("left_out").as_list().at(0)), static_cast<const LeftOutImage&>(recorded[0]));
  EXPECT_EQ(data.at("mean"), mean);
  const std::string log = text_of(folder.log());
  EXPECT_NE(
      log.find("resumed with data.on_bad_image=skip\ngoes on without " + path(late_) + ": broken PNG: the file ends early\n"),
      std::string::npos)
      << log;
  const RunFolder second = copy(folder, "second");
  const RunFolder third = copy(folder, "third");
  warnings_ = "";
  EXPECT_EQ(resume(folder).run(), RunOutcome::finished);
  EXPECT_NE(warnings_.find(": goes on without 1 file:\n  " + path(late_)), std::string::npos) << warnings_;
  fs::remove(path(late_));
  EXPECT_EQ(resume(second).run(), RunOutcome::finished);
  images_.add(late_, 200);
  EXPECT_EQ(resume(third).run(), RunOutcome::finished);
  EXPECT_EQ(text_of(second.metrics()), text_of(folder.metrics()));
  EXPECT_EQ(text_of(third.metrics()), text_of(folder.metrics()));
}

TEST_F(BrokenImages, AllThatBrokeWhileTheRunTrainedAreLeftOut) {
  std::optional<Session> session = start("error");
  const RunFolder folder = session->folder();
  truncate(late_);
  images_.write(order_.end()[-2], "no image any more");
  const std::string whole = text_of(path(order_.front()));
  images_.add(order_.front(), 99);  // another image, which can be decoded
  message_of<IoError>([&] { session->run(); });
  session.reset();  // releases the run folder
  EXPECT_EQ(recorded_broken_images(real_vfs(), folder).size(), 2u);
  const std::string refused = message_of<IoError>([&] { amend_run(real_vfs(), folder, kSkip); });
  EXPECT_NE(refused.find("beside the images that cannot be decoded, the training data changed"), std::string::npos) << refused;
  images_.write(order_.front(), whole);
  amend_run(real_vfs(), folder, kSkip);
  EXPECT_EQ(data_of(folder).at("left_out").as_list().size(), 2u);
  EXPECT_EQ(resume(folder).run(), RunOutcome::finished);
}

TEST_F(BrokenImages, OtherChangesOfARunThatSkipsLeaveNothingOut) {
  const RunFolder folder = broken_run("skip");
  amend_run(real_vfs(), folder, std::vector<std::string>{"checkpoint.keep=5"});
  EXPECT_EQ(data_of(folder).find("left_out"), nullptr);
  EXPECT_THROW(resume(folder), IoError);
  amend_run(real_vfs(), folder, kSkip);
  EXPECT_EQ(data_of(folder).at("left_out").as_list().size(), 1u);
}

TEST_F(BrokenImages, ARunGoesOnWithTheWholeFile) {
  const RunFolder whole = [this] {
    Session straight = start("error");
    straight.run();
    return straight.folder();
  }();
  const RunFolder folder = broken_run();
  fs::copy_file(path("whole.png"), path(late_), fs::copy_options::overwrite_existing);
  const RunFolder skipping = copy(folder, "skipping");
  EXPECT_EQ(resume(folder).run(), RunOutcome::finished);
  EXPECT_EQ(text_of(folder.metrics()), text_of(whole.metrics()));
  amend_run(real_vfs(), skipping, kSkip);
  EXPECT_EQ(data_of(skipping).find("left_out"), nullptr);
  EXPECT_EQ(resume(skipping).run(), RunOutcome::finished);
  EXPECT_EQ(text_of(skipping.metrics()), text_of(whole.metrics()));
}

TEST_F(BrokenImages, OtherChangesOfTheDataAreRefusedAndChangeNothing) {
  const RunFolder folder = broken_run();
  const std::string config = text_of(folder.resolved_config());
  const std::string log = text_of(folder.log());
  const auto refused = [&](const std::string& part) {
    const std::string message = message_of<IoError>([&] { amend_run(real_vfs(), folder, kSkip); });
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_EQ(text_of(folder.resolved_config()), config);
    EXPECT_EQ(text_of(folder.log()), log);
  };
  fs::rename(path("train/cat/0.png"), path("kept.png"));
  refused("resume: beside the images that cannot be decoded, the training data changed since the run began");
  fs::rename(path("kept.png"), path("train/cat/0.png"));
  images_.add("test/dog/9.png", 9);
  refused("resume: beside the images that cannot be decoded, the test data changed since the run began");
  fs::remove(path("test/dog/9.png"));
  truncate("train/dog/4.png");  // it broke too, but no run recorded what it was
  refused("resume: beside the images that cannot be decoded, the training data changed since the run began");
  images_.add("train/dog/4.png", 128 + 4, 15, 12);
  EXPECT_NO_THROW(amend_run(real_vfs(), folder, kSkip));
  const std::string back =
      message_of<ConfigError>([&] { amend_run(real_vfs(), folder, std::vector<std::string>{"data.on_bad_image=error"}); });
  EXPECT_NE(back.find("resume: data.on_bad_image cannot change in a run that has begun"), std::string::npos) << back;
}

TEST_F(BrokenImages, ARunThatSkipsFromTheBeginningGoesOnToo) {
  images_.write("train/dog/bad.png", "no image");
  const RunFolder folder = broken_run("skip");
  EXPECT_EQ(message_, path(late_) + ": broken PNG: the file ends early; " + go_on(folder));
  const std::string again = message_of<IoError>([&] { resume(folder); });
  EXPECT_NE(again.find(path(late_) + ", which ended this run, is another file than the run began with: " + go_on(folder)),
            std::string::npos)
      << again;
  amend_run(real_vfs(), folder, kSkip);
  EXPECT_EQ(data_of(folder).at("left_out").as_list().size(), 1u) << "what was bad from the beginning never was its data";
  EXPECT_EQ(resume(folder).run(), RunOutcome::finished);
}

// This includes images that the run had not read when it ended, and images that only its reports read.
TEST_F(BrokenImages, AllThatCannotBeDecodedAreLeftOutAtOnce) {
  const std::string test = "test/cat/1.png";
  truncate(test);
  const RunFolder folder = broken_run();
  amend_run(real_vfs(), folder, kSkip);
  EXPECT_EQ(data_of(folder).at("left_out").as_list().size(), 2u);
  EXPECT_EQ(recorded_broken_images(real_vfs(), folder).size(), 1u);
  const Session session = resume(folder);
  EXPECT_NE(warnings_.find(path("test") + ": goes on without 1 file:\n  " + path(test)), std::string::npos) << warnings_;
}

TEST_F(BrokenImages, ARunWithoutACheckpointBeginsAgainWithoutThem) {
  const RunFolder folder = broken_run();
  fs::remove_all(folder.checkpoints());
  fs::create_directory(folder.checkpoints());
  amend_run(real_vfs(), folder, kSkip);
  const RunFolder second = copy(folder, "second");
  EXPECT_EQ(resume(folder).run(), RunOutcome::finished);
  EXPECT_EQ(resume(second).run(), RunOutcome::finished);
  EXPECT_EQ(text_of(second.metrics()), text_of(folder.metrics()));
}

TEST_F(BrokenImages, AForkGoesOnWithoutThemToo) {
  const RunFolder folder = broken_run();
  const std::string message = message_of<ConfigError>([&] { fork_run(real_vfs(), folder, "2", kSkip, path("forks")); });
  EXPECT_EQ(message,
            "fork: data.on_bad_image cannot change: resume the run with it, which keeps the places of bad images, and fork then");
  amend_run(real_vfs(), folder, kSkip);
  const RunFolder fork = fork_run(real_vfs(), folder, "2", std::vector<std::string>{}, path("forks"));
  EXPECT_EQ(resume(fork).run(), RunOutcome::finished);
  EXPECT_EQ(resume(folder).run(), RunOutcome::finished);
  EXPECT_EQ(text_of(fork.metrics()), text_of(folder.metrics()));
}

}  // namespace
}  // namespace tessera
