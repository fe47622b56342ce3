#include "train/tasks/next_token.h"

#include <gtest/gtest.h>

#include <numbers>

#include "core/nn/module.h"
#include "core/ops/embedding.h"
#include "core/support/error.h"
#include "layers/models/bert.h"
#include "layers/models/gpt.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"
#include "tests/support/scopes.h"
#include "tests/train/tasks/token_batches.h"
#include "train/data/loader.h"
#include "train/data/text/text_config.h"
#include "train/run/evaluate.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/masked_token.h"

namespace tessera {
namespace {

constexpr std::int64_t kNo = Masking::kNoTarget;

Batch batch_of(std::vector<std::int64_t> targets, std::int64_t samples, std::vector<std::int64_t> bytes) {
  const std::int64_t length = static_cast<std::int64_t>(targets.size()) / samples;
  return Batch{{"tokens", Tensor::zeros({samples, length}, DType::i64)},
               {"targets", Tensor::from(targets, {samples, length})},
               {"bytes", Tensor::from(bytes, {samples})}};
}

// A language model that sees only the previous token: row t of its table holds the scores of the token after t.
class Bigrams final : public Module {
 public:
  explicit Bigrams(std::int64_t vocabulary) { add_parameter("table", Tensor::zeros({vocabulary, vocabulary})); }
  std::string_view kind() const override { return "bigrams"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context&) override { return embedding(x.value(), parameter("table").var()); }
  Shape output_shape(const Shape& input, Trace*) const override {
    return {input[0], input[1], parameter("table").value().dim(1)};
  }
  std::int64_t input_limit() const override { return parameter("table").value().dim(0); }
};

class TextFiles : public ::testing::Test {
 protected:
  DataSplits load(const std::string& text, std::int64_t sequence, std::vector<double> split) const {
    write_file_atomically(real_vfs(), folder / "a.txt", text);
    TextDataConfig config;
    config.files = {"a.txt"};
    config.sequence = sequence;
    config.split = std::move(split);
    return config.load(folder.path().string(), 7);
  }

  TemporaryFolder folder;
  const NextToken task;

 private:
  const testing::VariableScope cache_{"TESSERA_CACHE", ""};
};
using NextTokenTask = TextFiles;

TEST_F(NextTokenTask, LossIsTheMeanOverTargets) {
  const Tensor scores = random_scores(2, 3, 11, 1);
  const Batch batch = batch_of({4, 0, kNo, 10, kNo, kNo}, 2, {5, 2});
  const double expected = (nats_of(scores, 0, 4) + nats_of(scores, 1, 0) + nats_of(scores, 3, 10)) / 3;
  EXPECT_NEAR(task.loss(Var(scores), batch, {}).value().item(), expected, 1e-6);
  EXPECT_EQ(task.loss_weight(batch), 3);
  EXPECT_GT(task.loss(Var(scores), batch, {.label_smoothing = 0.5}).value().item(), 0);
  EXPECT_NE(task.loss(Var(scores), batch, {.label_smoothing = 0.5}).value().item(),
            task.loss(Var(scores), batch, {}).value().item());
  EXPECT_EQ(task.loss(Var(scores), batch_of(std::vector<std::int64_t>(6, kNo), 2, {0, 0}), {}).value().item(), 0);
}

// A batch is weighted by its targets, not by its samples.
TEST_F(NextTokenTask, MetricsAreThoseOfTheWholeSplit) {
  const Tensor first = random_scores(2, 3, 11, 1), second = random_scores(1, 3, 11, 2);
  const auto score = task.score();
  EXPECT_EQ(score->values(), (std::vector<double>{0, 0, 0}));
  judge(task, *score, first, batch_of({1, 2, 3, 4, 5, 6}, 2, {7, 8}));
  judge(task, *score, second, batch_of({9, kNo, kNo}, 1, {2}));
  double nats = nats_of(second, 0, 9);
  for (std::int64_t i = 0; i < 6; ++i) nats += nats_of(first, i, i + 1);
  const std::vector<double> values = score->values();
  EXPECT_NEAR(values[0], nats / 7, 1e-6);
  EXPECT_NEAR(values[1], nats / std::numbers::ln2 / 17, 1e-6);
  EXPECT_NEAR(values[2], std::exp(nats / 7), 1e-4);
}

TEST_F(NextTokenTask, SumsOfBatchesAreThoseOfTheSplit) {
  const Tensor first = random_scores(2, 3, 11, 1), second = random_scores(1, 3, 11, 2);
  const Batch whole = batch_of({1, 2, 3, 4, 5, 6}, 2, {7, 8}), rest = batch_of({9, kNo, kNo}, 1, {2});
  const auto all = task.score(), added = task.score();
  judge(task, *all, first, whole);
  judge(task, *all, second, rest);
  for (const auto& [scores, batch] : {std::pair{first, whole}, {second, rest}}) {
    const auto own = task.score();
    judge(task, *own, scores, batch);
    added->add_sums(own->sums());
  }
  EXPECT_EQ(added->values(), all->values());
  EXPECT_EQ(added->sums(), all->sums());
}

TEST_F(NextTokenTask, ScoresAreMadeOfTheLossesThatTheyAreGiven) {
  const auto score = task.score();
  score->add(random_scores(1, 3, 11, 1), batch_of({1, 2, 3}, 1, {3}), {.mean = 2, .weight = 3});
  score->add(random_scores(1, 3, 11, 2), batch_of({4, kNo, kNo}, 1, {1}), {.mean = 6, .weight = 1});
  EXPECT_EQ(score->values()[0], 3);
}

TEST_F(NextTokenTask, DetailsTellTokensBytesAndRowsOfWindows) {
  const DataSplits data = load("abcdefghijklmnopqrstuvwxyz0123456789", 5, {40, 60, 0});
  const auto details = task.details(data.val, {.predictions = true});
  Loader loader(data.val, evaluation_options(3, 0));
  std::vector<double> rows;
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const Batch batch = loader.next();
    judge(task, *details, random_scores(batch.samples(), 5, 256, 3), batch);
  }
  const Value keys = details->keys();
  EXPECT_EQ(keys.at("tokens").as_int(), 21);  // of 22 tokens the first is no target
  EXPECT_EQ(keys.at("bytes").as_int(), 21);
  EXPECT_EQ(keys.at("token_loss").as_double(), details->values()[0]);
  EXPECT_EQ(details->text(), "21 tokens, 21 bytes of text\n");
  const std::string csv = details->predictions();
  EXPECT_TRUE(csv.starts_with("index,origin,tokens,bytes,token_loss\n0,\"" + folder / "a.txt" + ", token 14\",5,5,")) << csv;
  EXPECT_NE(csv.find("\n4,\"" + folder / "a.txt" + ", token 34\",1,1,"), std::string::npos) << csv;
  EXPECT_EQ(message_of<ConfigError>([&] { task.details(data.val, {.predictions = true, .probabilities = true}); }),
            "next-token: a sample has many answers; --probabilities is for one");
}

TEST_F(NextTokenTask, AnswersMustHaveAClassForEachToken) {
  const DataSplits data = load(std::string(100, 'a'), 8, {100, 0, 0});
  const auto error = [&](const Shape& output) {
    return message_of<ConfigError>([&] { task.check_output(output, *data.train.dataset); });
  };
  EXPECT_EQ(error({1, 8, 256}), "");
  EXPECT_EQ(error({1, 8, 300}), "") << "a vocabulary may be padded";
  EXPECT_EQ(
      error({1, 8, 255}),
      "the network gives [1, 8, 255] for one sample; text has 8 tokens of tokenizer \"bytes\", which has 256, so it must be "
      "[1, 8, 256] or wider");
  EXPECT_NE(error({1, 256}), "");
  EXPECT_NE(error({1, 7, 256}), "");
  EXPECT_EQ(task.units_per_sample(*data.train.dataset), 8);
}

TEST_F(NextTokenTask, RefusesANetworkThatSeesTheAnswer) {
  const auto bert = models::Bert{.layers = 1, .width = 8, .heads = 2, .vocabulary = 256}.build({1, 8});
  EXPECT_EQ(
      message_of<ConfigError>([&] { task.check_network(*bert); }),
      "'blocks.0.attn.heads' is not causal, so a position sees the next token, which task next-token asks for; needs causal "
      "attention, as gpt has it, or data.task: masked-token");
  const auto gpt = models::Gpt{.layers = 1, .width = 8, .heads = 2, .vocabulary = 256}.build({1, 8});
  EXPECT_NO_THROW(task.check_network(*gpt));
  EXPECT_NO_THROW(MaskedToken().check_network(*bert));
}

TEST_F(NextTokenTask, APredictionIsOfTheTokenBehindTheText) {
  const DataSplits data = load(std::string(100, 'a'), 8, {100, 0, 0});
  const auto prediction = task.prediction(data.train.dataset->description(), {1, 8}, {1, 8, 300});
  EXPECT_EQ(prediction->answers(), 256);
  const auto text = prediction->open_text("0123456789", "--text");
  EXPECT_EQ(text->field(), (Field{"tokens", DType::i64, {8}, 256})) << "the end of a longer one";
  const Tensor tokens = Tensor::zeros({8}, DType::i64);
  text->read(0, tokens);
  EXPECT_EQ(tokens.to_vector<std::int64_t>(), (std::vector<std::int64_t>{'2', '3', '4', '5', '6', '7', '8', '9'}));
  write_file_atomically(real_vfs(), folder / "b.txt", "ab");
  EXPECT_EQ(prediction->open(folder / "b.txt")->field().shape, Shape{2});
  Tensor output = Tensor::zeros({1, 2, 300});
  for (std::int64_t i = 0; i < 600; ++i) output.data<float>()[i] = static_cast<float>(i);
  const Tensor scores = prediction->scores(output);
  EXPECT_EQ(scores.shape(), (Shape{1, 256}));
  EXPECT_EQ(scores.data<float>()[0], 300);
  EXPECT_EQ(scores.data<float>()[255], 555);
  EXPECT_EQ(prediction->name_of('x'), "x");
  EXPECT_EQ(prediction->name_of(0xE2), "\\xe2") << "no letter alone";
  EXPECT_EQ(prediction->shown("\n"), "\"\\n\"");
}

TEST_F(NextTokenTask, APredictionNeedsATextAndANetworkThatFits) {
  const DataSplits data = load(std::string(100, 'a'), 8, {100, 0, 0});
  const Value description = data.train.dataset->description();
  const auto prediction = task.prediction(description, {1, 8}, {1, 8, 256});
  write_file_atomically(real_vfs(), folder / "b.txt", "");
  const std::string path = folder / "b.txt";
  EXPECT_EQ(message_of<IoError>([&] { prediction->open(path); }),
            path + ": the text is empty; tokenizer bytes has no end of text to begin behind, so that it needs one");
  EXPECT_EQ(message_of<IoError>([&] { prediction->open(folder / "none"); }), std::string(folder / "none") + ": no such file");
  EXPECT_EQ(message_of<IoError>([&] { prediction->open(folder.path().string()); }),
            folder.path().string() + ": is no regular file");
  EXPECT_NE(message_of<ConfigError>([&] {
              task.prediction(description, {1, 8}, {1, 8, 255});
            }).find("tokenizer bytes has 256"),
            std::string::npos);
  EXPECT_NE(message_of<ConfigError>([&] { task.prediction(Value::map(), {1, 8}, {1, 8, 256}); }).find("text"), std::string::npos);
}

// In "abcdeabcde..." each byte determines the next, so that a table of bigrams can learn the text.
TEST_F(NextTokenTask, ATableOfBigramsLearnsATextThatRepeats) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "abcde"[i % 5];
  const DataSplits data = load(text, 7, {80, 20, 0});
  Bigrams model(256);
  TrainingConfig config;
  config.optimizer.form = SgdConfig{.lr = 50, .momentum = 0};
  LoaderOptions options;
  options.batch = 5;
  Loader loader(data.train, options);
  StageTrainer trainer(model, config, task, 1, loader.batches_per_epoch(), 60);
  Loader val(data.val, evaluation_options(3, 0));
  const Evaluation before = evaluate(model, val, task, DType::f32);
  EXPECT_NEAR(before.metrics[0], std::log(256), 1e-5);
  EXPECT_NEAR(before.metrics[1], 8, 1e-4) << "bits of a byte that anything may be";
  EXPECT_NEAR(before.metrics[2], 256, 1e-2);
  EXPECT_NEAR(before.loss, before.metrics[0], 1e-9) << "weighted by targets, which the last window has fewer of";
  for (std::int64_t step = 0; step < 60; ++step) trainer.step(loader.next(), step, step);
  EXPECT_LT(evaluate(model, val, task, DType::f32).metrics[0], 0.3);
}

}  // namespace
}  // namespace tessera
