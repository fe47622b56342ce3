// predict: its answers for files equal the run's evaluation of the same samples, whichever file holds the network.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <map>

#include "core/config/value.h"
#include "core/io/npy.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/end_to_end/small_text.h"
#include "tests/end_to_end/trained_run.h"
#include "tests/support/image_files.h"
#include "train/data/glyphs.h"
#include "train/run/network_file.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kImages = 40;
constexpr std::int64_t kPixels = kGlyphSide * kGlyphSide;

// The second stage computes with a factored layer.
constexpr const char* kBlocks = R"(
deterministic: true
data: {name: glyphs, count: 300, test_count: 40, batch: 30, val: 0}
optimizer: {name: sgd, lr: 0.3}
stages:
  - {name: dense, train: 2e}
  - {name: tucker, factorise: {keep: always, layers: conv2, ranks: {out: 4, in: 4}}, train: 1e}
)";

class PredictFiles : public TrainedRun {
 protected:
  static void SetUpTestSuite() {
    train_shared(tiny_experiment(kBlocks));
    const std::string& folder = images();
    fs::create_directory(folder);
    for (std::int64_t i = 0; i < kImages; ++i) {
      const auto* const from = test_set().images.data<std::uint8_t>() + i * kPixels;
      write_bytes(image(i), encode_png(kGlyphSide, kGlyphSide, Bytes(from, from + kPixels), {.kind = PngKind::grey}));
    }
  }

  // The test set of the experiment, whose seed is 1.
  static const MemoryDataset& test_set() {
    static const MemoryDataset set = make_glyphs(1, "test", kImages);
    return set;
  }
  static std::string images() { return *folder_ / "images"; }
  static std::string image(std::int64_t i) { return str(images(), '/', i / 10, i % 10, ".png"); }

  static Outcome predict(const std::string& network, const std::vector<std::string>& more) {
    return run_program(joined({"predict", network}, more));
  }
  static std::vector<Value> rows_of(const Outcome& outcome) {
    std::vector<Value> rows;
    for (const std::string& line : split(outcome.output, '\n')) {
      if (line.starts_with('{')) rows.push_back(parse_json(line, "output"));
    }
    return rows;
  }

  // The rows of eval --predictions, by column.
  static std::vector<std::map<std::string, std::string>> evaluated(const std::vector<std::string>& more = {}) {
    const std::string file = *folder_ / "p.csv";
    const Outcome outcome = run_program(joined({"eval", run(), "--predictions", file, "--probabilities"}, more));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    const auto cells = parse_csv(read_bytes(file), file);
    std::vector<std::map<std::string, std::string>> rows;
    for (std::size_t i = 1; i < cells.size(); ++i) {
      for (std::size_t c = 0; c < cells[i].size(); ++c) rows.resize(i), rows.back()[cells[0][c]] = cells[i][c];
    }
    return rows;
  }
};

// A batch of another size may round differently.
void expect_same_answers(const std::vector<Value>& rows, const std::vector<std::map<std::string, std::string>>& evaluated) {
  ASSERT_EQ(rows.size(), evaluated.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& answers = rows[i].at("answers").as_list();
    ASSERT_EQ(answers.size(), 10U);
    EXPECT_EQ(answers[0].at("answer").as_string(), evaluated[i].at("predicted")) << i;
    for (const Value& answer : answers) {
      const double expected = std::stod(evaluated[i].at("p:" + answer.at("answer").as_string()));
      EXPECT_NEAR(answer.at("probability").as_double(), expected, 1e-4 * expected + 1e-7) << i;
    }
  }
}

TEST_F(PredictFiles, AgreesWithTheEvaluationOfTheSameSamples) {
  const Outcome outcome = predict(run(), {images(), "--top", "10", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const std::vector<Value> rows = rows_of(outcome);
  expect_same_answers(rows, evaluated());
  EXPECT_EQ(rows[17].at("input").as_string(), image(17));
  EXPECT_TRUE(rows[17].at("sample").is_null());
  EXPECT_TRUE(rows[17].at("error").is_null());
  expect_same_answers(rows_of(predict(run(), {images(), "--top", "10", "--json", "--at", "dense"})),
                      evaluated({"--at", "dense"}));
}

TEST_F(PredictFiles, ArraysOfTheSameSamplesHaveTheSameLines) {
  const auto* const bytes = test_set().images.data<std::uint8_t>();
  const std::string dict = str("{'descr': '|u1', 'fortran_order': False, 'shape': (", kImages, ", 28, 28, 1)}");
  const std::string array = *folder_ / "glyphs.npy";
  write_bytes(array, str(std::string_view("\x93NUMPY\1\0", 8), static_cast<char>(dict.size()), '\0', dict,
                         std::string(bytes, bytes + kImages * kPixels)));
  const auto of_array = split(predict(run(), {array}).output, '\n'), of_files = split(predict(run(), {images()}).output, '\n');
  ASSERT_EQ(of_array.size(), static_cast<std::size_t>(kImages) + 1);
  ASSERT_EQ(of_files.size(), of_array.size());
  for (std::int64_t i = 0; i < kImages; ++i) {
    const std::string line = of_array[static_cast<std::size_t>(i)], begin = str(array, '[', i, "]: ");
    ASSERT_TRUE(line.starts_with(begin)) << line;
    EXPECT_EQ(of_files[static_cast<std::size_t>(i)], str(image(i), ": ", line.substr(begin.size())));
  }
}

TEST_F(PredictFiles, AnUnreadableOneInTheMiddleIsALineAndTheRestIsAnswered) {
  const std::string broken = *folder_ / "broken.png", scores = *folder_ / "scores.npy";
  write_bytes(broken, read_bytes(image(0)).substr(0, 100));
  const std::vector<std::string> inputs{image(0), image(1), broken, image(2)};
  const Outcome plain = predict(run(), joined(inputs, {"--top", "2"}));
  EXPECT_EQ(plain.exit_code, 1);
  const auto lines = split(plain.output, '\n');
  expect_in(plain.output, broken + ": error: broken PNG: the file ends early\n");
  expect_in(plain.output, "1 of 4 have no answer\n");
  ASSERT_GE(lines.size(), 4U);
  EXPECT_TRUE(lines[3].starts_with(image(2) + ": ")) << plain.output;
  EXPECT_EQ(std::ranges::count(lines[3], ','), 1) << lines[3];

  const Outcome json = predict(run(), joined(inputs, {"--top", "10", "--json", "--npy", scores}));
  EXPECT_EQ(json.exit_code, 1);
  expect_in(json.output, "wrote " + scores + "\n");
  const std::vector<Value> rows = rows_of(json);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[2].at("error").as_string(), "broken PNG: the file ends early");
  EXPECT_TRUE(rows[2].at("answers").as_list().empty());
  NpyFile file(scores);
  ASSERT_EQ(file.shape(), (Shape{4, 10}));
  std::vector<float> values(40);
  file.read(0, 40, values.data());
  for (std::size_t i = 0; i < 4; ++i) {
    double sum = 0;
    for (std::size_t c = 0; c < 10; ++c) sum += std::exp(static_cast<double>(values[i * 10 + c]));
    EXPECT_EQ(std::isnan(sum), i == 2);
    for (const Value& answer : rows[i].at("answers").as_list()) {
      const auto c = static_cast<std::size_t>(answer.at("number").as_int());
      EXPECT_NEAR(std::exp(static_cast<double>(values[i * 10 + c])) / sum, answer.at("probability").as_double(), 1e-12);
    }
  }
}

TEST_F(PredictFiles, ScoresAreWrittenThroughALink) {
  const std::string kept = *folder_ / "kept", link = *folder_ / "link.npy";
  fs::create_directory(kept);
  fs::create_symlink("kept/scores.npy", link);
  for (const std::int64_t samples : {1, 2}) {  // first makes the file, then replaces it
    std::vector<std::string> arguments{"--npy", link};
    for (std::int64_t i = 0; i < samples; ++i) arguments.push_back(image(i));
    expect_outcome(predict(run(), arguments), 0, "wrote " + link);
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(NpyFile(kept + "/scores.npy").shape(), (Shape{samples, 10}));
  }
  const std::string input = *folder_ / "input.png";
  fs::create_symlink(image(0), input);
  expect_outcome(predict(run(), {image(0), "--npy", input}), 2, "is an input, too, which it would replace");
}

TEST_F(PredictFiles, AnExportedNetworkSaysTheSameWithoutTheRun) {
  const std::string out = *folder_ / "out", file = out + "/model.safetensors";
  expect_outcome(run_program({"export", run(), "--layout", "tessera", "--output", out}), 0,
                 str("wrote ", file, "\nnext: tessera predict ", file, " INPUT...\n"));
  const Outcome of_run = predict(run(), {images()});
  const std::string aside = *folder_ / "aside";
  fs::rename(run(), aside);
  const Outcome of_file = predict(file, {images(), "--threads", "1"});
  fs::rename(aside, run());
  EXPECT_EQ(of_file.exit_code, 0) << of_file.output;
  EXPECT_EQ(of_file.output, of_run.output);
  // The metadata beside the network is exported to PyTorch too.
  expect_outcome(run_program({"export", file, "--output", *folder_ / "torch"}), 0, "classify.py");
  expect_outcome(predict(file, {images(), "--at", "dense"}), 2, "--at chooses a checkpoint of a run");
}

TEST_F(PredictFiles, AnExportKeepsWhatAClockChoseForItsBatches) {
  const std::string out = *folder_ / "timed", file = out + "/model.safetensors";
  expect_outcome(run_program({"export", run(), "--layout", "tessera", "--batch", "200,300", "--threads", "1", "--output", out}),
                 0, "timing inference with batches of 200,300");
  const auto use = use_of(decode_safetensors(real_vfs().read_file(file), file), file);
  ASSERT_TRUE(use);
  const std::string choices = to_json(use->decisions);
  for (const char* batch : {" n200 ", " n300 "}) EXPECT_NE(choices.find(batch), std::string::npos) << choices;
  EXPECT_EQ(predict(file, {image(0)}).exit_code, 0);
  const auto refusal = [&](std::vector<std::string> options, const char* message) {
    const std::string none = *folder_ / "none";
    expect_outcome(run_program(joined({"export", run(), "--output", none}, options)), 2, message);
    EXPECT_FALSE(fs::exists(none));
  };
  refusal({"--layout", "torch", "--batch", "1"}, "--batch and --threads are of --layout tessera");
  refusal({"--layout", "tessera", "--batch", "0"}, "--batch: '0' is no whole number from 1 to");
}

TEST_F(PredictFiles, ACompressedNetworkKnowsWhatItsRunLearnt) {
  const std::string config = *folder_ / "small.yaml", out = *folder_ / "small.safetensors";
  const std::string tiny = tiny_experiment(
      "deterministic: true\ninput: [1, 28, 28]\nfactorise: {keep: always, layers: conv1, ranks: {out: 4, in: 1}}\n");
  write_bytes(config, "version: 1\n" + tiny.substr(tiny.find("threads:")));
  const std::string dense = *folder_ / "dense";
  ASSERT_EQ(run_program({"train", *folder_ / "tiny.yaml", "--runs", dense, "~stages[1]"}).exit_code, 0);
  const Outcome compressed = run_program({"compress", dense + "/tiny/1", "--config", config, "--out", out});
  ASSERT_EQ(compressed.exit_code, 0) << compressed.output;
  const Outcome outcome = predict(out, {image(3), "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  const std::vector<Value> rows = rows_of(outcome);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("answers").as_list().size(), 5U);
}

TEST_F(PredictFiles, RefusesWhatCannotBe) {
  expect_outcome(predict(run(), {}), 2, "predict: needs files, folders or --text");
  expect_outcome(predict(run(), {"--text", "To be"}), 2, "the network takes images");
  expect_outcome(predict(run(), {image(0), "--at", "nowhere"}), 2, "predict: no checkpoint 'nowhere'");
  expect_outcome(predict(run(), {image(0), "--npy", *folder_ / "none/x.npy"}), 2, "--npy: there is no folder");
  expect_outcome(predict(run(), {image(0), "--device", "abacus"}), 2, "abacus");
  expect_outcome(predict(run(), {image(0), "--npy", image(0)}), 2, "is an input, too, which it would replace");
  const std::string pipe = *folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_outcome(predict(run(), {image(0), "--npy", pipe}), 2, "is a device, pipe or socket; name a file");
  EXPECT_TRUE(fs::is_fifo(pipe));
  const std::string circle = *folder_ / "circle", astray = *folder_ / "astray";
  fs::create_symlink("circle", circle);
  fs::create_symlink("none/x.npy", astray);
  expect_outcome(predict(run(), {image(0), "--npy", circle}), 2,
                 "--npy: " + circle + ": is a symbolic link that leads to no end");
  expect_outcome(predict(run(), {image(0), "--npy", astray}), 2, "--npy: there is no folder " + *folder_ / "none");
  expect_outcome(predict(run(), {"-", "-"}), 2, "- is given more than once");
  EXPECT_EQ(predict(run(), {image(0), "--text", "To be"}).output.find("00.png: "), std::string::npos)
      << "refused before it answers";
  expect_outcome(predict(*folder_ / "nothing", {image(0)}), 2, "nothing");
  const Outcome other = predict(run(), {*folder_ / "none.png"});
  expect_outcome(other, 1, *folder_ / "none.png" + std::string(": error: no such file\n"));
}

// The answer to a text equals what generate appends to it if it always takes the likeliest token.
TEST(PredictText, TellsTheTokensThatFollow) {
  const TemporaryFolder folder;
  write_bytes(folder / "a.txt", numbered_lines(150));
  write_bytes(folder / "gpt.yaml", R"(
version: 1
name: gpt
deterministic: true
threads: {compute: 1, loader: 0}
data: {name: text, files: [a.txt], split: [80, 10, 10], sequence: 16, batch: 8}
model: {name: gpt, layers: 1, width: 16, heads: 2, vocabulary: 256, length: 16}
optimizer: {name: adamw, lr: 0.01}
stages: [{name: pretrain, train: 2e}]
)");
  const std::vector<std::string> cache{"TESSERA_CACHE=" + folder / "cache"};
  ASSERT_EQ(run_program({"train", folder / "gpt.yaml", "--runs", folder / "runs"}, cache).exit_code, 0);
  const std::string run = folder / "runs/gpt/1";
  const Outcome generated = run_program({"generate", run, "--prompt", "9 bottle", "--tokens", "1", "--temperature", "0"}, cache);
  ASSERT_EQ(generated.exit_code, 0) << generated.output;
  write_bytes(folder / "b.txt", "of beer on the wall\n9 bottle");
  const Outcome outcome = run_program({"predict", run, folder / "b.txt", "--text", "9 bottle", "--top", "2", "--json"}, cache);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  const auto lines = split(outcome.output, '\n');
  ASSERT_GE(lines.size(), 2U);
  EXPECT_EQ(parse_json(lines[0], "output").at("input").as_string(), folder / "b.txt");
  const Value row = parse_json(lines[1], "output");
  EXPECT_EQ(row.at("input").as_string(), "--text");
  ASSERT_EQ(row.at("answers").as_list().size(), 2U);
  EXPECT_EQ(row.at("answers").as_list()[0].at("answer").as_string(), generated.output.substr(0, 1));
  const std::string plain = run_program({"predict", run, "--text", "9 bottle", "--top", "1"}, cache).output;
  EXPECT_TRUE(plain.starts_with(str("--text: \"", generated.output.substr(0, 1), "\" 0."))) << plain;

  ASSERT_EQ(run_program({"export", run, "--layout", "tessera", "--output", folder / "out"}, cache).exit_code, 0);
  EXPECT_EQ(
      run_program({"predict", folder / "out/model.safetensors", "--text", "9 bottle", "--top", "1", "--threads", "1"}, cache)
          .output,
      plain);
}

}  // namespace
}  // namespace tessera::testing
