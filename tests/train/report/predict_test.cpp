#include "train/report/predict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/config/read.h"
#include "core/io/npy.h"
#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/image_files.h"
#include "tests/support/message_of.h"
#include "tests/train/run/weights_files.h"
#include "train/report/export.h"

namespace tessera {
namespace {

const Shape kInput{1, 2, 2, 1};
constexpr const char* kLayers = R"(["flatten", {"linear": {"out": 3, "name": "fc"}}])";

// A network file with inputs of 4 numbers and 3 classes that also describes the network's use.
class Predict : public ::testing::Test {
 protected:
  Predict() : model_(build_model(testing::layers_config(kLayers), kInput)) {
    testing::randomise(*model_);
    use_.task = "classification";
    use_.data = parse_json(R"({"classes": ["ant", "bee\n", "cat"], "preprocessing": {"mean": [0.5], "std": [0.5]}})", "test");
  }

  struct Row {
    Predicted predicted;
    std::vector<float> scores;
  };

  PredictOptions options(std::vector<std::string> inputs) const {
    return {.network = file_.string(), .inputs = std::move(inputs), .device = "cpu", .threads = 1};
  }
  std::vector<Row> predicted(const PredictOptions& options) {
    write_network(real_vfs(), *model_, kInput, file_, use_);
    std::vector<Row> rows;
    summary_ = predict(real_vfs(), options, [&](const Predicted& row, std::span<const float> scores) {
      rows.push_back({row, {scores.begin(), scores.end()}});
    });
    return rows;
  }
  std::string refusal(const PredictOptions& options) {
    return message_of<ConfigError>([&] { predicted(options); });
  }
  // Writes an .npy file of samples of 4 values each.
  std::string array(const std::string& name, const std::vector<float>& values) const {
    write_file_atomically(real_vfs(), folder_.path() / name, encode_npy(values, {std::ssize(values) / 4, 2, 2, 1}));
    return folder_ / name;
  }
  std::vector<float> scores_of(std::vector<float> sample) const {
    const NoGrad no_grad;
    return model_->forward(Var(Tensor::from(sample, kInput)), {}).value().to_vector<float>();
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "net.safetensors";
  std::unique_ptr<Module> model_;
  NetworkUse use_;
  PredictSummary summary_;
};

TEST_F(Predict, TellsTheLikeliestFirst) {
  const std::string path = array("x.npy", {1, 2, 3, 4, -1, 0, 2, 1});
  const auto rows = predicted(options({path}));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(summary_.told, 2);
  EXPECT_EQ(summary_.answers, 3);
  for (std::size_t i = 0; i < 2; ++i) {
    const Predicted& row = rows[i].predicted;
    const std::vector<float> expected = i == 0 ? scores_of({1, 2, 3, 4}) : scores_of({-1, 0, 2, 1});
    ASSERT_EQ(rows[i].scores.size(), 3U);
    double sum = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(rows[i].scores[c], expected[c], 1e-6 * (1 + std::abs(expected[c])));
      sum += std::exp(static_cast<double>(expected[c]));
    }
    EXPECT_EQ(row.input, path);
    EXPECT_EQ(row.sample, static_cast<std::int64_t>(i));
    EXPECT_EQ(row.error, std::nullopt);
    ASSERT_EQ(row.answers.size(), 3U);
    const std::vector<std::string> names{"ant", "bee\n", "cat"};
    for (std::size_t k = 0; k < 3; ++k) {
      const Answer& answer = row.answers[k];
      EXPECT_EQ(answer.answer, names[static_cast<std::size_t>(answer.number)]);
      EXPECT_NEAR(answer.probability, std::exp(expected[static_cast<std::size_t>(answer.number)]) / sum, 1e-5);
      if (k == 0) continue;
      EXPECT_LE(answer.probability, row.answers[k - 1].probability);
    }
  }
  PredictOptions one = options({path});
  one.top = 1;
  EXPECT_EQ(predicted(one)[1].predicted.answers.size(), 1U);
}

TEST_F(Predict, BatchesChangeNoAnswer) {
  std::vector<float> values;
  for (int i = 0; i < 7 * 4; ++i) values.push_back(static_cast<float>(i % 5) - 2);
  const std::string path = array("x.npy", values), other = array("y.npy", {1, 2, 3, 4});
  PredictOptions by = options({path, other});
  by.batch = 100;
  const auto all = predicted(by);
  ASSERT_EQ(all.size(), 8U);
  for (const std::int64_t batch : {1, 3, 4, 8}) {
    by.batch = batch;
    const auto rows = predicted(by);
    ASSERT_EQ(rows.size(), 8U);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(to_text(rows[i].predicted), to_text(all[i].predicted)) << batch;
      EXPECT_EQ(rows[i].predicted.sample, i < 7 ? static_cast<std::int64_t>(i) : 0);
    }
  }
}

TEST_F(Predict, WhatCannotBeReadHasALineInItsPlace) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string first = array("a.npy", {1, 2, 3, 4, nan, 2, 3, 4}), last = array("z.npy", {1, 0, 0, 0});
  std::filesystem::create_directory(folder_.path() / "empty");
  const std::string empty = folder_ / "empty", none = folder_ / "none.png";
  const auto rows = predicted(options({first, empty, none, last}));
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(summary_.told, 2);
  EXPECT_EQ(summary_.failed, 3);
  EXPECT_EQ(rows[0].predicted.error, std::nullopt);
  EXPECT_EQ(to_text(rows[1].predicted), first + "[1]: error: the network's scores have a NaN or Inf");
  EXPECT_TRUE(rows[1].scores.empty());
  EXPECT_TRUE(rows[1].predicted.answers.empty());
  EXPECT_EQ(to_text(rows[2].predicted), empty + ": error: has no .jpg, .jpeg or .png file");
  EXPECT_EQ(to_text(rows[3].predicted), none + ": error: no such file");
  EXPECT_EQ(rows[4].predicted.input, last);
  EXPECT_EQ(rows[4].predicted.error, std::nullopt);
}

// The readable images beside it are still predicted, in their order.
TEST_F(Predict, WhatCannotBeLookedIntoInAFolderHasALine) {
  use_.data.set("preprocessing", parse_json(R"({"mean": [0.5], "std": [0.5]})", "test"));
  const std::filesystem::path images = folder_.path() / "images";
  std::filesystem::create_directories(images / "b");
  const testing::Bytes pixels{0, 50, 100, 255};
  for (const char* name : {"a.png", "b/1.png", "d.png"}) {
    write_file_atomically(real_vfs(), images / name, testing::encode_png(2, 2, pixels, {.kind = testing::PngKind::grey}));
  }
  std::filesystem::create_directory_symlink(folder_.path() / "moved", images / "b/2");
  std::filesystem::create_directory_symlink("c", images / "c");
  const auto rows = predicted(options({images.string()}));
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(summary_.failed, 2);
  const auto expect_row = [&](std::size_t i, const char* name, const char* reason) {
    EXPECT_EQ(rows[i].predicted.input, (images / name).string());
    EXPECT_EQ(rows[i].predicted.error.value_or(""), reason);
  };
  expect_row(0, "a.png", "");
  expect_row(1, "b/1.png", "");
  expect_row(2, "b/2", "cannot tell whether it is a folder: No such file or directory");
  expect_row(3, "c", "cannot tell whether it is a folder: Too many levels of symbolic links");
  expect_row(4, "d.png", "");
}

TEST_F(Predict, RowsHaveTheKeysThatAreDocumented) {
  Predicted row{.input = "a\xff.png", .sample = {}, .error = {}, .answers = {{"bee\n", 1, 0.75, "bee?"}}};
  EXPECT_EQ(to_json(write(row)),
            R"({"input":"a?.png","sample":null,"error":null,"answers":[{"answer":"bee\n","number":1,"probability":0.75}]})");
  EXPECT_EQ(to_text(row), "a?.png: bee? 0.7500");
  row.sample = 3;
  row.error = "broken";
  row.answers.clear();
  EXPECT_EQ(to_json(write(row)), R"({"input":"a?.png","sample":3,"error":"broken","answers":[]})");
}

TEST_F(Predict, RefusesWhatCannotAnswer) {
  const std::string path = array("x.npy", {1, 2, 3, 4});
  EXPECT_EQ(refusal(options({})), "predict: needs files, folders or --text");
  PredictOptions text = options({path});
  text.text = "To be";
  EXPECT_EQ(refusal(text), "predict: --text is a text; the network takes images");
  PredictOptions at = options({path});
  at.at = "dense";
  EXPECT_NE(refusal(at).find("--at chooses a checkpoint of a run"), std::string::npos);
  use_.data.set("classes", Value::list({"ant", "bee"}));
  const std::string file = file_.string() + ": ";
  EXPECT_EQ(refusal(options({path})), file + "the network gives [1, 3] for one image, but was saved with 2 classes");
  use_.task = "masked-token";
  EXPECT_EQ(refusal(options({path})), file + "the network learnt the task masked-token, which has no answer to a sample alone");
  use_.task = "chess";
  EXPECT_EQ(refusal(options({path})), file + "no task 'chess'");
  write_network(real_vfs(), *model_, kInput, file_);
  EXPECT_EQ(
      message_of<ConfigError>([&] { predict(real_vfs(), options({path}), [](const Predicted&, std::span<const float>) {}); }),
      str("predict: ", file_.string(),
          " does not tell what its network learnt; tessera export RUN --layout tessera writes a file that does"));
}

TEST_F(Predict, AFaultOfTheFileNamesTheFile) {
  const std::string path = array("x.npy", {1, 2, 3, 4}), file = file_.string() + ": ";
  const auto expect_fault = [&](const std::string& fault) {
    const std::string message = refusal(options({path}));
    EXPECT_TRUE(message.starts_with(file)) << message;
    EXPECT_NE(message.find(fault), std::string::npos) << message;
    EXPECT_EQ(message.find(file, 1), std::string::npos) << "named once: " << message;
  };
  const NetworkUse whole = use_;
  use_.data.erase("preprocessing");
  expect_fault("the network was saved without 'preprocessing'");
  use_.data.set("preprocessing", parse_json(R"({"mean": [0.5], "std": [0.5], "crop": 2})", "test"));
  expect_fault("preprocessing: needs both of resize and crop, or none");
  use_.data.set("preprocessing", parse_json(R"({"mean": [0.5], "std": [0.5], "scale": 2})", "test"));
  expect_fault("preprocessing.scale: unknown key");
  use_ = whole;
  use_.data.set("classes", 7);
  expect_fault("expected a list");
  use_ = whole;
  use_.decisions = parse_json(R"({"version": 7, "decisions": {}})", "test");
  expect_fault("decisions: version is 7; this program reads 1");
  use_ = whole;
  use_.precision = "f99";
  expect_fault("'f99' is no precision; choices: ");
  PredictOptions asked = options({path});
  asked.precision = "f98";
  EXPECT_TRUE(refusal(asked).starts_with("'f98' is no precision")) << "a fault of the command line: " << refusal(asked);
}

// The exported file alone gives the same answers.
TEST_F(Predict, AnExportIsOneFile) {
  export_tessera(real_vfs(), *model_, kInput, use_, folder_.path() / "out");
  const std::string exported = folder_ / "out/model.safetensors";
  const std::string path = array("x.npy", {1, 2, 3, 4});
  const auto rows = predicted(options({path}));
  PredictOptions from_export = options({path});
  from_export.network = exported;
  EXPECT_EQ(to_text(predicted(from_export)[0].predicted), to_text(rows[0].predicted));
  EXPECT_NE(message_of<ConfigError>([&] {
              export_tessera(real_vfs(), *model_, kInput, use_, folder_.path() / "out");
            }).find("model.safetensors is there already"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
