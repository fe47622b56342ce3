// compress: the written network computes what its table says, whatever the source of the weights; and what compress refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "core/autograd/var.h"
#include "core/config/value.h"
#include "core/io/safetensors.h"
#include "core/rng.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "layers/compressed.h"
#include "tests/end_to_end/trained_run.h"
#include "train/experiment.h"
#include "train/run/import_weights.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;

const Shape kInput{1, 28, 28, 1};
constexpr const char* kFactorise = "factorise: {keep: always, layers: 'conv*', ranks: {out: 4, in: 1}}";

// `deterministic` reads no clock, so that the output is the same each time.
std::string experiment() {
  return tiny_experiment(str(R"(
deterministic: true
data: {name: glyphs, count: 96, test_count: 30, batch: 16, val: 0}
optimizer: {name: sgd, lr: 0.05}
stages:
  - {name: dense, train: 2s}
  - {name: small, )",
                             kFactorise, "}\n"),
                         {.batch_norm = true});
}

// The same model and block without data, training and stages.
std::string smaller_file() {
  const std::string tiny =
      tiny_experiment(str("deterministic: true\ninput: [1, 28, 28]\n", kFactorise, '\n'), {.batch_norm = true});
  return "version: 1\n" + tiny.substr(tiny.find("threads:"));
}

class Compress : public TrainedRun {
 protected:
  static void SetUpTestSuite() {
    train_shared(experiment(), {"~stages[1]"});
    write_bytes(smaller(), smaller_file());
  }
  void SetUp() override { fs::remove(out()); }

  static std::string smaller() { return *folder_ / "small.yaml"; }
  static std::string out() { return *folder_ / "out.safetensors"; }
  static Outcome compress(const std::string& weights, const std::string& config, const std::vector<std::string>& more = {}) {
    return run_program(joined({"compress", weights, "--config", config, "--out", out()}, more));
  }
  // Runs compress and returns the bytes of the written file.
  static std::string compressed(const std::string& weights, const std::string& config,
                                const std::vector<std::string>& more = {}) {
    fs::remove(out());
    const Outcome outcome = compress(weights, config, more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return read_bytes(out());
  }
  // Expects a refusal with this message, and no output file.
  static void expect_refused(const Outcome& outcome, const std::string& part) {
    expect_outcome(outcome, 2, part);
    EXPECT_FALSE(fs::exists(out()));
    for (const auto& entry : fs::directory_iterator(folder_->path())) {
      EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
    }
  }
  static std::unique_ptr<Module> dense() {
    ModelConfig config = load_experiment(file()).config.model;
    config.weights = run();
    return initial_model(real_vfs(), config, kInput, 0).model;
  }
  static std::unique_ptr<Module> loaded() {
    return initial_model(real_vfs(), {.form = models::Saved(), .weights = out()}, kInput, 0).model;
  }
  static std::vector<float> logits(Module& model) {
    const Tensor x = Tensor::empty({3, 28, 28, 1});
    fill_normal(x, RngStream(8, "test", "x"), 0, 1);
    const NoGrad no_grad;
    return model.forward(Var(x), {}).value().to_vector<float>();
  }
};

TEST_F(Compress, TheFileComesBackAsTheNetworkWhoseWeightsTheFactorsComposeTo) {
  const Outcome outcome = compress(run(), file());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const std::unique_ptr<Module> factored = loaded();
  const std::unique_ptr<Module> composed = dense();
  const std::vector<float> before = logits(*composed);
  for (const char* path : {"conv1", "conv2"}) {
    const Module& layer = find_module(*factored, path);
    const CompressedLayer* compressed = as_compressed(layer);
    ASSERT_NE(compressed, nullptr) << path;
    find_module(*composed, path).parameter("weight").set_value(compressed->dense_weight());
  }
  const std::vector<float> got = logits(*factored), wanted = logits(*composed);
  double moved = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], 1e-4) << i;  // f32 sums over at most 72 products in another order
    moved = std::max(moved, static_cast<double>(std::abs(wanted[i] - before[i])));
  }
  EXPECT_GT(moved, 1e-2) << "four ranks of eight change the network";
}

TEST_F(Compress, TheTableSaysWhatBecameOfEachLayerAndOfTheNetwork) {
  const Outcome outcome = compress(run(), file());
  expect_outcome(outcome, 0, run() + " as " + file() + ", stage small says; input [1, 28, 28, 1], cpu, f32\n");
  expect_in(outcome.output, "\nfactorise: asked out 4 in 1\n");
  expect_in(outcome.output,
            "layer    format   ranks        error  parameters            MACs  dense ms  ms  speed-up (95 %)  decision\n");
  expect_in(outcome.output, "\nconv2    tucker2  out 4 in 1  ");
  expect_in(outcome.output, "  584 -> 84  ");  // 8 x 72 weights, 8 biases -> 8, 36, 32 weights, 8 biases
  const std::string end = str("  2 of 2 matched layers factored\nwrote ", out(), ": ",
                              formatted("%.1f", static_cast<double>(fs::file_size(out())) / 1024.0),
                              " KiB\nnext: tessera bench saved --input 1x28x28 weights=", out(), '\n');
  EXPECT_TRUE(outcome.output.ends_with(end)) << outcome.output;
}

// The tensor data after a safetensors header. The header states the use of a run's network, but not that of bare weights.
std::string tensors(const std::string& file) {
  std::uint64_t header = 0;
  EXPECT_GT(file.size(), sizeof header);
  std::memcpy(&header, file.data(), sizeof header);
  return file.substr(sizeof header + header);
}

TEST_F(Compress, ASmallerFileOtherWeightsAndAbsentDataGiveTheSameBytes) {
  const std::string bytes = compressed(run(), file());
  EXPECT_TRUE(compressed(run(), smaller()) == bytes) << "a smaller file";
  const std::string bare = compressed(newest_checkpoint(run()) + "/model.safetensors", file());
  EXPECT_TRUE(tensors(bare) == tensors(bytes)) << "a file of ours";
  const std::string torch = *folder_ / "torch";
  ASSERT_EQ(run_program({"export", run(), "--output", torch}).exit_code, 0);
  EXPECT_TRUE(compressed(torch + "/model.safetensors", file()) == bare) << "PyTorch's names and axes";
  EXPECT_TRUE(compressed(run(), file(), {"data={name: mnist, root: /nowhere}"}) == bytes) << "data that is not there";
  EXPECT_TRUE(compressed(run(), smaller(), {"model={name: saved}"}) == bytes) << "the structure that the weights bring";
  EXPECT_TRUE(compressed(run(), smaller(), {"~input", "--input", "1x28x28"}) == bytes) << "an input that the file does not say";
  EXPECT_FALSE(compressed(run(), smaller(), {"factorise.ranks.out=3"}) == bytes);
}

// The clock is read once, then every figure and verdict is replaced, so that no result depends on the clock.
TEST_F(Compress, RecordedChoicesAreReplayedAndDecide) {
  const std::string decisions = *folder_ / "d.json";
  const std::vector<std::string> timed{"deterministic=false", "factorise.keep_for.batch=2"};
  compressed(run(), smaller(), joined(timed, {"--record", decisions}));
  Value choices = parse_json(read_bytes(decisions), decisions);
  const auto replay = [&](const std::string& verdict, const std::string& keep) {
    for (Value::Entry& choice : choices.find("decisions")->as_map()) {
      if (choice.key.starts_with("keep.")) choice.value = Value(verdict + " dense_ms 2 compressed_ms 1 ratio 2 low 1.5 high 2.5");
    }
    write_bytes(decisions, to_json(choices));
    fs::remove(out());
    return compress(run(), smaller(), joined(timed, {"factorise.keep=" + keep, "--decisions", decisions}));
  };
  const Outcome kept = replay("faster", "faster");
  expect_outcome(kept, 0, "\nfactorise: asked out 4 in 1; the network timed at batch 2, folded inference, 1 threads\n");
  expect_in(kept.output, "  2   1  2.00x (1.50-2.50)  factored\n");
  expect_in(kept.output, "  2   1  2.00x (1.50-2.50)  2 of 2 matched layers factored\n");
  const Outcome marked = replay("not-faster", "always");
  expect_outcome(
      marked, 0,
      "  2   1  2.00x (1.50-2.50)  factored: not faster at batch 2, folded inference, 1 threads, by the rounds that decide\n");
  expect_in(marked.output, "  2 of 2 matched layers factored, not faster in the rounds that decide\n");
  const Outcome back = replay("not-faster", "faster");
  expect_outcome(back, 0, "  dense: not faster at batch 2, folded inference, 1 threads, by the rounds that decide\n");
  expect_in(back.output, "  0 of 2 matched layers changed\n");
  EXPECT_EQ(logits(*loaded()), logits(*dense()));
  fs::remove(out());
  expect_refused(compress(run(), smaller(), {"factorise.keep=faster"}),
                 "keep: faster is decided by a clock, which deterministic: true forbids");
}

TEST_F(Compress, ARunGoesOnFromTheFileAndItsNetworkIsEvaluatedAndExported) {
  compressed(run(), file());
  const std::string tuned = *folder_ / "tuned.yaml";
  write_bytes(tuned, str("version: 1\nname: tuned\nthreads: {compute: 1, loader: 0}\n",
                         "data: {name: glyphs, count: 96, test_count: 30, batch: 16, val: 0}\n",
                         "model: {name: saved, weights: out.safetensors}\nstages: [{name: tuned, train: 2s}]\n"));
  expect_outcome(run_program({"layers", tuned}), 0, "tucker2_conv2d");
  expect_outcome(run_program({"plan", tuned}), 0, "tucker2_conv2d");
  expect_outcome(run_program({"train", tuned, "--runs", *folder_ / "runs"}), 0, " tensors from " + out());
  const std::string next = *folder_ / "runs/tuned/1";
  expect_outcome(run_program({"eval", next}), 0, "top-1");
  expect_outcome(run_program({"export", next, "--output", *folder_ / "tuned-torch"}), 0, "wrote ");
  expect_outcome(run_program({"bench", "saved", "--input", "1x28x28", "weights=" + next, "--rounds", "6", "--batch", "1"}), 0,
                 "tucker2_conv2d");
  expect_outcome(run_program({"validate", tuned, "model.weights=" + newest_checkpoint(run()) + "/model.safetensors"}), 2,
                 "model.safetensors: holds tensors and no network, which name: saved needs");
}

TEST_F(Compress, TheFileIsExportedAsARunIs) {
  compressed(run(), file());
  const std::string folder = *folder_ / "out-torch";
  expect_outcome(run_program({"export", out(), "--output", folder}), 0, "wrote " + folder + "/model.safetensors and ");
  const SafetensorsFile exported = decode_safetensors(read_bytes(folder + "/model.safetensors"), "exported");
  EXPECT_EQ(exported.tensors.at("conv2.1.weight").shape(), (Shape{4, 1, 3, 3}));
  const Value model = parse_json(read_bytes(folder + "/model.json"), "model.json");
  EXPECT_EQ(to_json(model.at("input")), "[1,28,28]");
  EXPECT_EQ(to_json(model.at("origin")), str(R"({"file":")", out(), R"("})"));
  const std::string alone = newest_checkpoint(run()) + "/model.safetensors";
  expect_outcome(run_program({"export", alone, "--output", *folder_ / "other"}), 2, alone + ": holds no network and its input");
  EXPECT_FALSE(fs::exists(*folder_ / "other"));
}

TEST_F(Compress, JsonHasTheKeysThatAreDocumented) {
  const Outcome outcome = compress(run(), file(), {"--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const Value answer = parse_json(outcome.output, "output");
  std::string keys;
  for (const Value::Entry& entry : answer.as_map()) keys += entry.key + ' ';
  EXPECT_EQ(keys, "weights config stage input device precision passes output bytes ");
  EXPECT_EQ(answer.at("bytes").as_int(), static_cast<std::int64_t>(fs::file_size(out())));
  EXPECT_EQ(to_json(answer.at("input")), "[1,28,28,1]");
  const Value& conv2 = answer.at("passes").as_list().at(0).at("layers").as_list().at(1);
  EXPECT_EQ(conv2.at("path"), Value("conv2"));
  EXPECT_EQ(conv2.at("decision"), Value("factored"));
  EXPECT_EQ(to_json(conv2.at("ranks")), R"({"out":4,"in":1})");
}

TEST_F(Compress, WeightsThatDoNotFitAreListed) {
  expect_refused(compress(*folder_ / "none.safetensors", file()),
                 "weights: no file or run folder " + (*folder_ / "none.safetensors"));
  expect_refused(compress(file(), file()), "safetensors: " + file());
  const std::string checkpoint = newest_checkpoint(run()) + "/model.safetensors";
  SafetensorsFile weights = decode_safetensors(read_bytes(checkpoint), checkpoint);
  const std::string bad = *folder_ / "bad.safetensors";
  weights.tensors.at("conv2.weight").data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  weights.tensors["extra.weight"] = Tensor::zeros({2});
  weights.tensors.erase("fc.bias");
  weights.tensors["conv1.bias"] = Tensor::zeros({9});
  write_bytes(bad, encode_safetensors(weights));
  const Outcome outcome = compress(bad, file());
  for (const char* part : {"bad.safetensors does not fit the network layers", "\n  missing: fc.bias [10]",
                           "\n  unexpected: extra.weight [2]", "\n  mismatched: conv1.bias is f32 [9], the network needs f32 [8]",
                           "\n  not finite: conv2.weight [8, 3, 3, 8] has 1 NaN or Inf of 576"}) {
    expect_refused(outcome, part);
  }
  expect_refused(compress(run(), smaller(), {"--input", "2x28x28"}), "conv1.weight");
  expect_refused(compress(run(), smaller(), {"--input", "1x1x1"}), run() + ": ");
}

TEST_F(Compress, FaultsOfTheFileAreAllToldWithTheirPlaces) {
  std::string text = smaller_file();
  text.replace(text.find("keep: always"), 12, "kepe: always");
  text.replace(text.find("deterministic"), 13, "determinstic");
  const std::string bad = *folder_ / "bad.yaml";
  write_bytes(bad, text);
  const Outcome keys = compress(run(), bad);
  expect_refused(keys, "bad.yaml:12:1: determinstic: unknown key; did you mean 'deterministic'?\n");
  expect_refused(keys, "factorise.kepe: unknown key; did you mean 'keep'?\n");

  expect_refused(compress(run(), smaller(), {"~factorise"}), "factorise: required key is missing");
  expect_refused(compress(run(), smaller(), {"input=[1, 28]"}), "input: needs channels, height and width, or one number");
  expect_refused(compress(run(), smaller(), {"model.weights=x"}), "model.weights: ");
  expect_refused(compress(run(), smaller(), {"precision=f64"}), "precision: ");
  expect_refused(compress(run(), smaller(), {"~input"}), "takes inputs of many shapes; give one with --input");
  expect_refused(compress(run(), file(), {"~stages[1]"}), "no stage compresses the network");
  expect_refused(compress(run(), *folder_ / "none.yaml"), "cannot be read");
  write_bytes(*folder_ / "conv9.yaml", [] {
    std::string other = smaller_file();
    return other.replace(other.find("'conv*'"), 7, "conv9");
  }());
  expect_refused(compress(run(), *folder_ / "conv9.yaml"),
                 "conv9.yaml:14:35: factorise.layers: selector 'conv9' matches no layer");
  expect_refused(compress(run(), file(), {"stages[1].factorise.ranks.out=99"}),
                 "command line: stages[1].factorise.ranks.out: layer 'conv1': out rank is 99");
}

TEST_F(Compress, KeysThatNeedTrainingDataAreRefused) {
  const Outcome outcome = compress(run(), smaller(), {"factorise.weighted=true", "factorise.recalibrate=5"});
  expect_refused(outcome, "weighted needs training data, which compress does not read; leave it out");
  expect_in(outcome.output, "recalibrate needs training data, which compress does not read; leave it out");
}

TEST_F(Compress, NothingThatIsThereIsWrittenOver) {
  write_bytes(out(), "mine");
  expect_outcome(compress(run(), file()), 2, out() + " is there already; give another file with --out");
  EXPECT_EQ(read_bytes(out()), "mine");
  expect_outcome(run_program({"compress", run(), "--config", file(), "--out", *folder_ / "none/x"}), 2,
                 "--out: there is no folder");
  expect_outcome(run_program({"compress", run()}), 2, "--config is required");
  const Outcome help = run_program({"compress", "--help"});
  expect_outcome(help, 0, "Examples: tessera compress ");
  expect_in(help.output, "compressed.safetensors");
}

}  // namespace
}  // namespace tessera::testing
