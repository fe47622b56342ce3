// Text from a file to metrics: checked, trained on, killed and resumed, evaluated.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <csignal>
#include <fstream>

#include "core/autograd/var.h"
#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"
#include "tests/end_to_end/small_text.h"
#include "tests/support/relative_error.h"
#include "train/run/import_weights.h"

namespace tessera::testing {
namespace {

class Text : public ::testing::Test {
 protected:
  void SetUp() override {
    write_bytes(folder_ / "a.txt", numbered_lines(90, "beer"));
    write_bytes(folder_ / "b.txt", numbered_lines(90, "water"));
    write_bytes(folder_ / "gpt.yaml", kSmallGpt);
  }

  Outcome run(const std::vector<std::string>& arguments, const std::vector<std::string>& more = {}) const {
    return run_program(arguments, joined({"TESSERA_CACHE=" + folder_ / "cache"}, more));
  }
  Value json(const std::vector<std::string>& arguments) const {
    const Outcome outcome = run(joined(arguments, {"--json"}));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return parse_json(outcome.output, "output");
  }
  std::string train(const std::string& runs, const std::vector<std::string>& overrides = {}) const {
    const Outcome outcome = run(joined({"train", folder_ / "gpt.yaml", "--runs", folder_ / runs}, overrides));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return folder_ / (runs + "/gpt/1");
  }

  TemporaryFolder folder_;
};

TEST_F(Text, DataCheckCountsBytesTokensAndWindows) {
  const Outcome plain = run({"data", "check", folder_ / "gpt.yaml"});
  expect_outcome(plain, 0, "vocabulary 256: clean");
  expect_in(plain.output, "next: tessera train");
  const Value report = json({"data", "check", folder_ / "gpt.yaml"});
  EXPECT_EQ(report.at("files").as_list()[0].at("bytes").as_int(), static_cast<std::int64_t>(numbered_lines(90, "beer").size()));
  EXPECT_EQ(report.at("splits").as_list()[0].at("name").as_string(), "train");
  write_bytes(folder_ / "b.txt", numbered_lines(90, "beer"));
  expect_outcome(run({"data", "check", folder_ / "gpt.yaml"}), 1, "not clean");
  write_bytes(folder_ / "b.txt", "");
  expect_outcome(run({"data", "check", folder_ / "gpt.yaml"}), 2, "b.txt: is empty; needs text");
}

TEST_F(Text, BertNeedsMaskedTokens) {
  const Outcome refused = run({"validate", folder_ / "gpt.yaml", "model.name=bert"});
  expect_outcome(refused, 2, "model: 'blocks.0.attn.heads' is not causal");
}

// Nothing is saved before the first step, so that an immediate end loses nothing.
TEST_F(Text, ASignalEndsTheReadingOfFilesAtOnce) {
  const std::string pipe = folder_ / "pipe.txt";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  RunningProgram program({"train", folder_ / "gpt.yaml", "--runs", folder_ / "runs", "data.files=[" + pipe + "]"},
                         {"TESSERA_CACHE=" + folder_ / "cache"});
  std::ofstream writer(pipe);  // returns when the program opens the pipe
  program.send(SIGTERM);
  ASSERT_TRUE(program.ends_within(std::chrono::seconds(20)));
  EXPECT_EQ(program.finish().exit_code, 128 + SIGTERM);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

TEST_F(Text, AGptLearnsAndEvalTellsHowWell) {
  const std::string trained = train("runs");
  const std::string metrics = read_bytes(trained + "/metrics.jsonl");
  expect_in(metrics, "\"val_token_loss\":");
  expect_in(metrics, "\"val_bits_per_byte\":");
  expect_in(read_bytes(trained + "/train.log"), "tok/s");
  expect_outcome(run({"eval", trained, "--predictions", folder_ / "p.csv"}), 0, "bits/byte ");
  const Value eval = json({"eval", trained});
  EXPECT_LT(eval.at("token_loss").as_double(), 4) << "of 5.5, which knows nothing";
  EXPECT_NEAR(eval.at("token_loss").as_double(), eval.at("loss").as_double(), 1e-9);
  EXPECT_NEAR(eval.at("bits_per_byte").as_double(), eval.at("token_loss").as_double() / std::log(2.0), 1e-9);
  expect_in(read_bytes(folder_ / "p.csv"), "index,origin,tokens,bytes,token_loss\n0,\"" + folder_ / "b.txt" + ", token ");
  expect_outcome(run({"eval", trained, "--predictions", folder_ / "p.csv", "--probabilities"}), 2, "a sample has many answers");
}

TEST_F(Text, BatchesOfEvaluationChangeNothing) {
  const std::string trained = train("runs");
  const double eight = json({"eval", trained}).at("token_loss").as_double();
  EXPECT_NEAR(json({"eval", trained, "data.batch=3"}).at("token_loss").as_double(), eight, 1e-6);
}

TEST_F(Text, AKilledRunEndsWithTheSameBytes) {
  const auto result = [](const std::string& path) { return tensors_of(path) + read_bytes(path + "/metrics.jsonl"); };
  const std::string straight = result(train("straight"));
  const Outcome killed = run({"train", folder_ / "gpt.yaml", "--runs", folder_ / "killed"}, {"TESSERA_KILL_AT=step:13"});
  EXPECT_EQ(killed.exit_code, 128 + 9) << killed.output;
  const std::string path = folder_ / "killed/gpt/1";
  expect_outcome(run({"resume", path}), 0, "");
  EXPECT_TRUE(result(path) == straight);
  EXPECT_TRUE(result(train("threads", {"threads.loader=0"})) == straight);
}

// Attention to near tokens and to a third of the others.
const std::vector<std::string> kSparse{"model.sparse={band: 3, density: 0.3}"};

TEST_F(Text, ASparseGptThatIsKilledEndsWithTheSameBytes) {
  const auto result = [](const std::string& path) { return tensors_of(path) + read_bytes(path + "/metrics.jsonl"); };
  const std::string straight = result(train("straight", kSparse));
  EXPECT_FALSE(straight == result(train("dense")));
  const Outcome killed =
      run(joined({"train", folder_ / "gpt.yaml", "--runs", folder_ / "killed"}, kSparse), {"TESSERA_KILL_AT=step:13"});
  EXPECT_EQ(killed.exit_code, 128 + 9) << killed.output;
  const std::string path = folder_ / "killed/gpt/1";
  expect_outcome(run({"resume", path}), 0, "");
  EXPECT_TRUE(result(path) == straight);
  EXPECT_TRUE(result(train("threads", {kSparse[0], "threads.loader=0"})) == straight);
}

TEST_F(Text, ASparseGptCountsItsPairsWritesTextAndKeepsItsPattern) {
  const auto macs_of = [&](const std::string& verb, const std::vector<std::string>& overrides) {
    const Value answer = json(joined({verb, folder_ / "gpt.yaml"}, overrides));
    const Value& layers = verb == "plan" ? answer.at("network").at("layers") : answer.at("layers");
    for (const Value& row : layers.as_list()) {
      if (row.at("path").as_string() == "blocks.0.attn.heads") return row.at("macs").as_int();
    }
    return std::int64_t{0};
  };
  // In each of 2 heads 16 + 15 + 14 pairs are near, and 27 of the other 91 are kept. A head is 12 wide.
  EXPECT_EQ(macs_of("plan", kSparse), 2 * 2 * (45 + 27) * 12);
  EXPECT_EQ(macs_of("layers", kSparse), macs_of("plan", kSparse));
  EXPECT_EQ(macs_of("plan", {}), 2 * 2 * 136 * 12);

  const std::string trained = train("runs", kSparse);
  expect_outcome(run({"generate", trained, "--prompt", "9 bottles", "--tokens", "30"}), 0, "30 tokens behind 9 of the prompt");
  const double loss = json({"eval", trained}).at("token_loss").as_double();
  const std::string saved = train(
      "saved", {"model={name: saved, weights: \"" + trained + "\"}", "stages[0].train=1s", "seed=6", "optimizer.lr=1.0e-30"});
  EXPECT_NEAR(json({"eval", saved}).at("token_loss").as_double(), loss, 1e-6) << "the same pairs, of another seed's run";
  expect_outcome(run({"export", trained, "--layout", "huggingface", "--output", folder_ / "out"}), 2, "\"sparse\":");
}

// The network's logits for 16 tokens.
Tensor logits_of(Module& network) {
  const NoGrad no_grad;
  const Tensor tokens = Tensor::empty({1, 16}, DType::i64);
  for (std::int64_t i = 0; i < 16; ++i) tokens.data<std::int64_t>()[i] = (i * 37 + 11) % 256;
  return network(Var(tokens), {}).value();
}

constexpr const char* kNamedSparse =
    "{name: gpt, layers: 1, width: 24, heads: 2, length: 16, vocabulary: 256, sparse: {band: 3, density: 0.3}";

TEST_F(Text, ANamedGptTakesThePairsOfTheTrainedOne) {
  const std::string trained = train("runs", kSparse), file = folder_ / "small.safetensors";
  // The rank is high enough to represent every weight exactly.
  const auto compress = [&](const std::string& weights, const std::string& model) {
    write_bytes(folder_ / "compress.yaml", "version: 1\ndeterministic: true\ninput: [16]\nmodel: " + model +
                                               "}\nfactorise: {layers: '*.fc1', format: svd, ranks: {rank: 24}, keep: always}\n");
    return run({"compress", weights, "--config", folder_ / "compress.yaml", "--out", file});
  };
  const Outcome compressed = compress(trained, kNamedSparse);
  ASSERT_EQ(compressed.exit_code, 0) << compressed.output;
  const ModelConfig saved{.form = models::Saved(), .weights = trained};
  const Tensor before = logits_of(*initial_model(real_vfs(), saved, {1, 16}, 0).model);
  EXPECT_LT(relative_error(logits_of(*file_network(real_vfs(), file).model), before), 1e-5);
  std::filesystem::remove(file);

  const auto loss = [&](const std::string& path) { return json({"eval", path}).at("token_loss").as_double(); };
  const auto next = [&](const std::string& runs, const std::string& model) {
    return train(runs,
                 {"model=" + model + ", weights: \"" + trained + "\"}", "stages[0].train=1s", "seed=6", "optimizer.lr=1.0e-30"});
  };
  const std::string same = next("same", kNamedSparse);
  EXPECT_NEAR(loss(same), loss(trained), 1e-6) << "of another seed's run";
  std::string other = kNamedSparse;
  other.replace(other.find("band: 3"), 7, "band: 2");
  const std::string drawn = next("other", other);
  expect_in(read_bytes(drawn + "/train.log"), "; what 'blocks.0.attn.heads' sees is drawn anew");
  EXPECT_EQ(read_bytes(same + "/train.log").find("drawn anew"), std::string::npos);

  expect_outcome(compress(trained, other), 2, "'blocks.0.attn.heads' of model gpt is sparse attention, and ");
  const std::string tensors = newest_checkpoint(trained) + "/model.safetensors";
  std::filesystem::copy(tensors, folder_ / "tensors.safetensors");
  expect_outcome(compress(folder_ / "tensors.safetensors", kNamedSparse), 2,
                 "does not tell which pairs it sees by these keys, heads and positions");
  EXPECT_FALSE(std::filesystem::exists(file));
}

// The table is held to the tensor train by ADMM, then decomposed.
const std::vector<std::string> kTrain{
    "model.tied=false",
    "stages=[{name: held, train: 1e, admm: {layers: tokens, format: tt, ranks: {r1: 4}, keep: always, update: 6s}}, "
    "{name: factored, factorise: {from: held}}, {name: tuned, train: 1e}]"};

TEST_F(Text, ATableAsATrainThatIsKilledEndsWithTheSameBytes) {
  const auto result = [](const std::string& path) {
    return tensors_of(path) + read_bytes(path + "/metrics.jsonl") + read_bytes(path + "/layers.csv");
  };
  const std::string straight = train("straight", kTrain);
  std::vector<std::string> next = joined({"train", folder_ / "gpt.yaml", "--runs", folder_ / "killed"}, kTrain);
  const std::string path = folder_ / "killed/gpt/1";
  for (const char* place : {"step:8", "factorise:1", "step:50"}) {
    const Outcome killed = run(next, {str("TESSERA_KILL_AT=", place)});
    ASSERT_EQ(killed.exit_code, 128 + 9) << place << ": " << killed.output;
    next = {"resume", path};
  }
  expect_outcome(run(next), 0, "");
  EXPECT_TRUE(result(path) == result(straight));
  expect_in(read_bytes(straight + "/layers.csv"), "factored,tokens,embedding,tt_embedding,");
  expect_in(read_bytes(straight + "/metrics.jsonl"), "\"admm\":");
}

TEST_F(Text, ATableAsATrainWritesTextAndGoesBackToItsNetwork) {
  const std::string trained = train("runs", kTrain);
  expect_outcome(run({"generate", trained, "--prompt", "9 bottles", "--tokens", "30"}), 0, "30 tokens behind 9 of the prompt");
  const double loss = json({"eval", trained}).at("token_loss").as_double();
  const std::string saved = train("saved", {"model={name: saved, weights: \"" + trained + "\"}",
                                            "stages=[{name: again, train: 1s}]", "optimizer.lr=1.0e-30"});
  EXPECT_NEAR(json({"eval", saved}).at("token_loss").as_double(), loss, 1e-6);
  expect_outcome(run({"export", trained, "--layout", "huggingface", "--output", folder_ / "out"}), 2, "tokens.core1");
}

TEST_F(Text, ATableOfItsOwnIsListedWithTheTrainsThatHoldIt) {
  const auto tokens = [&](const std::string& tied) {
    return json({"layers", folder_ / "gpt.yaml", "model.tied=" + tied}).at("layers").as_list().at(0).at("formats");
  };
  EXPECT_TRUE(tokens("false").at("tt").at("possible").as_bool());
  EXPECT_EQ(tokens("false").at("svd").at("reason").as_string(), "is an embedding; svd factors linear and 1x1 conv2d");
  EXPECT_EQ(tokens("true").at("tt").at("reason").as_string(), "shares its table with 'head'");
  const Value plan = json(joined({"plan", folder_ / "gpt.yaml"}, kTrain));
  const Value& layer = plan.at("stages").as_list().at(1).at("network").at("layers").as_list().at(0);
  EXPECT_EQ(layer.at("kind").as_string(), "tt_embedding");
  EXPECT_EQ(layer.at("parameters").as_int(), 64 * 4 + 4 * 96);
  EXPECT_EQ(layer.at("macs").as_int(), 16 * (4 * 4 * 6)) << "of a window";
  expect_outcome(
      run({"validate", folder_ / "gpt.yaml", kTrain[1]}), 2,
      "match no conv2d, linear or embedding; matched: tokens; 'tokens' shares its table with 'head', which stays as it is");
}

TEST_F(Text, ATrainThatIsNotFasterGoesBack) {
  const std::vector<std::string> timed{"~deterministic", "model.tied=false",
                                       "stages=[{name: factored, factorise: {layers: tokens, format: tt, ranks: {r1: 4}}}]"};
  Value file = parse_json(read_bytes(train("timed", timed) + "/decisions.json"), "decisions.json");
  for (Value::Entry& entry : file.find("decisions")->as_map()) {
    if (entry.key.starts_with("keep.")) entry.value = "not-faster dense_ms 2 compressed_ms 3 ratio 0.7 low 0.6 high 0.8";
  }
  write_bytes(folder_ / "forged.json", to_json(file));
  const std::string forged = train("forged", joined(timed, {"--decisions", folder_ / "forged.json"}));
  const std::string layers = read_bytes(forged + "/layers.csv");
  expect_in(layers, "factored,tokens,embedding,embedding,tt,");
  expect_in(layers, ",2,3,0.7,0.6,0.8,false,,dense,\"not faster at batch ");
}

TEST_F(Text, WhatNoPatternIsIsTold) {
  const auto refused = [&](const std::string& keys, const std::string& message) {
    expect_outcome(run({"validate", folder_ / "gpt.yaml", keys}), 2, message);
  };
  refused("model.sparse={blocks: 8}", "model.sparse.blocks: must be 1, 16 or 32");
  refused("model.sparse={density: 1.5}", "model.sparse.density");
  refused("model.sparse={bnad: 8}", "did you mean");
  refused("model={name: gpt2, sparse: {band: 8}}", "gpt2 has the published sizes");
  refused("model={name: gpt, layers: 1, width: 24, heads: 2, vocabulary: 256, length: 8, positions: rotary, sparse: {band: 2}}",
          "its first position 0; the pattern has 8 positions");
}

TEST_F(Text, MaskedTokensAreLearntByBert) {
  write_bytes(folder_ / "gpt.yaml",
              std::string(kSmallGpt).replace(std::string(kSmallGpt).find("{name: gpt, layers"), 10, "{name: bert"));
  const std::string trained = train("runs", {"data.task=masked-token", "model.vocabulary=257"});
  const Value eval = json({"eval", trained});
  EXPECT_GT(eval.at("masked").as_int(), 30);
  EXPECT_LT(eval.at("masked_loss").as_double(), 5);
  const Outcome narrow = run({"validate", folder_ / "gpt.yaml", "data.task=masked-token"});
  expect_outcome(narrow, 2, "which has 257");
}

TEST_F(Text, ANetworkWithoutAPlaceForEveryTokenIsRefused) {
  const std::string text = kSmallGpt;
  const std::size_t model = text.find("model:");
  const auto validate = [&](const std::string& vocabulary) {
    write_bytes(folder_ / "gpt.yaml",
                str(text.substr(0, model), "model: {name: layers, layers: [{embedding: {vocabulary: ", vocabulary,
                    ", width: 8}}, {linear: {out: 256}}]}", text.substr(text.find('\n', model))));
    return run({"validate", folder_ / "gpt.yaml"});
  };
  expect_outcome(validate("255"), 2,
                 "model: the network reads whole numbers below 255, but the input 'tokens' of text has 256 of them");
  expect_outcome(validate("256"), 0, "ok");
}

TEST_F(Text, ResumingOnOtherTextIsRefused) {
  const Outcome killed = run({"train", folder_ / "gpt.yaml", "--runs", folder_ / "runs"}, {"TESSERA_KILL_AT=step:7"});
  EXPECT_EQ(killed.exit_code, 128 + 9) << killed.output;
  write_bytes(folder_ / "a.txt", numbered_lines(90, "wine"));
  const Outcome resumed = run({"resume", folder_ / "runs/gpt/1"});
  expect_outcome(resumed, 1, "the training data changed since the run began");
}

// The output of `generate` before its last line, which states the tokens and the time.
std::string text_of(const Outcome& outcome) {
  const std::size_t end = outcome.output.rfind('\n', outcome.output.find(" tokens behind "));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  return outcome.output.substr(0, end);
}

TEST_F(Text, ARunWritesText) {
  const std::string trained = train("runs", {"stages[0].train=12e"});
  const std::vector<std::string> plain{"generate", trained, "--prompt", "9 bottles", "--tokens", "30", "--seed", "4"};
  // Hot enough to leave what the network knows by heart, among tokens that it has seen.
  const std::vector<std::string> asked = joined(plain, {"--temperature", "5", "--top-k", "3"});
  const Outcome first = run(asked);
  expect_outcome(first, 0, "30 tokens behind 9 of the prompt");
  EXPECT_EQ(text_of(first).size(), 30U) << "a byte a token";
  EXPECT_EQ(text_of(run(asked)), text_of(first)) << "a seed gives one text";
  const std::string likeliest = text_of(run(joined(plain, {"--temperature", "0"})));
  EXPECT_NE(likeliest, text_of(first));
  EXPECT_TRUE(likeliest.starts_with(" of ")) << likeliest << ": what follows in every line that it learnt";
  EXPECT_EQ(text_of(run(joined(plain, {"--top-k", "1"}))), likeliest);
  std::filesystem::remove(folder_ / "a.txt");
  EXPECT_EQ(text_of(run(asked)), text_of(first)) << "of the data nothing is read";
}

TEST_F(Text, GenerateTakesTheChoicesOfTheClockThatItsCheckpointHolds) {
  const std::string key = "linear.row in128 out512 bias1 threads1 constant";
  const auto chosen = [&](const std::string& way) {
    return "{\"version\": 1, \"decisions\": {\"" + key + "\": \"" + way + "\"}}";
  };
  write_bytes(folder_ / "chosen.json", chosen("one_thread"));
  const std::string trained = train("runs", {"model.width=128", "stages[0].train=2s", "--decisions", folder_ / "chosen.json"});
  const std::vector<std::string> asked{"generate", trained, "--prompt", "9 bottles", "--tokens", "30", "--seed", "4"};
  const auto told = [&] { return run(asked, {"TESSERA_LOG=debug"}).output; };
  const std::string first = told();
  expect_in(first, "decisions: " + key + ": one_thread\n");
  expect_in(first, "decisions: linear.row in512 out128 bias1 threads1 constant: library\n");
  write_bytes(trained + "/decisions.json", chosen("team"));
  expect_in(told(), key + ": one_thread\n");
  const std::string text = text_of(run(asked));
  EXPECT_EQ(text.size(), 30U);
  EXPECT_EQ(text_of(run(asked)), text) << "a seed gives one text";
}

TEST_F(Text, GenerateTakesTheCheckpointThatAtNames) {
  const std::string trained = train("runs", {"checkpoint.keep=100"});
  const auto text_at = [&](const std::vector<std::string>& at) {
    return text_of(run(joined({"generate", trained, "--prompt", "9 bottles", "--tokens", "30", "--seed", "4"}, at)));
  };
  EXPECT_EQ(text_at({"--at", "pretrain"}), text_at({}));
  EXPECT_NE(text_at({"--at", "5"}), text_at({}));
  EXPECT_EQ(text_at({"--at", "best"}).size(), 30U);
  expect_outcome(run({"generate", trained, "--prompt", "a", "--at", "6"}), 2, "generate: no checkpoint '6'; there are:");
}

TEST_F(Text, GenerateRefusesWhatCannotBe) {
  const std::string trained = train("runs", {"stages[0].train=1s"});
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& part) {
    expect_outcome(run(joined({"generate", trained}, arguments)), 2, part);
  };
  refused({"--prompt", "a", "--top-p", "0"}, "top-p is 0; must be above 0 and at most 1");
  refused({"--prompt", "a", "--tokens", "9000000000"}, "tokens is 9000000000; must be 0 to 1000000000");
  refused({}, "the prompt is empty; tokenizer bytes has no end of text");
  refused({"--prompt", "a", "optimizer.lr=1"}, "could change what was learnt");
  refused({"--prompt", "a", "threads.compute=-1"}, "threads.compute");
}

TEST_F(Text, OnlyARunThatPredictsTheNextTokenWritesText) {
  write_bytes(folder_ / "gpt.yaml",
              std::string(kSmallGpt).replace(std::string(kSmallGpt).find("{name: gpt, layers"), 10, "{name: bert"));
  const std::string masked = train("runs", {"data.task=masked-token", "model.vocabulary=257", "stages[0].train=1s"});
  expect_outcome(run({"generate", masked, "--prompt", "a"}), 2, "learns the task masked-token; needs next-token");
}

TEST_F(Text, FilesMayStandBelowARoot) {
  const Value without = json({"data", "check", folder_ / "gpt.yaml"});
  const Value with = json({"data", "check", folder_ / "gpt.yaml", "data.root=" + folder_.path().string()});
  EXPECT_EQ(with, without);
}

}  // namespace
}  // namespace tessera::testing
