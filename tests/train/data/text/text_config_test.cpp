#include "train/data/text/text_config.h"

#include <gtest/gtest.h>

#include "tests/support/message_of.h"
#include "tests/support/scopes.h"
#include "tests/train/data/text/tokenizer_files.h"
#include "train/config/yaml.h"
#include "train/data/text/tokenizer_config.h"

namespace tessera {
namespace {

std::string fault(const std::string& yaml) {
  return message_of<ConfigError>([&] { read<TextDataConfig>(parse_yaml(yaml, "x.yaml")); });
}
std::string tokenizer_fault(const std::string& yaml) { return fault("{files: [a.txt], tokenizer: " + yaml + "}"); }

TEST(TextConfig, ReadsAndWritesItself) {
  const auto config =
      read<TextDataConfig>(parse_yaml("{files: [a.txt, b.txt], split: [80, 15, 5], tokenizer: {bpe: {vocab: v.json, merges: "
                                      "m.txt}}, sequence: 64, task: masked-token}",
                                      "x.yaml"));
  EXPECT_EQ(config.files, (std::vector<std::string>{"a.txt", "b.txt"}));
  EXPECT_EQ(config.sequence, 64);
  EXPECT_EQ(write(read<TextDataConfig>(write(config))), write(config));
}

TEST(TextConfig, FaultsAreNamed) {
  EXPECT_EQ(fault("{sequence: 8}"), "x.yaml:1:1: files: required key is missing");
  EXPECT_EQ(fault("{files: []}"), "x.yaml:1:9: files: needs the names of text files");
  EXPECT_EQ(fault("{files: [a.txt], split: [90, 5]}"),
            "x.yaml:1:25: split: needs three numbers of 0 to 100 that sum to 100, the first above 0");
  EXPECT_NE(fault("{files: [a.txt], split: [90, 5, 6]}"), "");
  EXPECT_NE(fault("{files: [a.txt], split: [0, 50, 50]}"), "");
  EXPECT_NE(fault("{files: [a.txt], split: [100.5, -0.5, 0]}"), "");
  EXPECT_EQ(fault("{files: [a.txt], split: [99.9, 0.1, 0]}"), "");
  EXPECT_NE(fault("{files: [a.txt], sequence: 0}"), "");
  EXPECT_NE(fault("{files: [a.txt], task: translate}"), "");
}

TEST(TextConfig, FaultsOfTheTokenizerAreNamed) {
  EXPECT_EQ(tokenizer_fault("byte"), "x.yaml:1:29: tokenizer: unknown tokenizer 'byte'; did you mean 'bytes'?");
  EXPECT_EQ(tokenizer_fault("{worldpiece: {vocab: v}}"),
            "x.yaml:1:30: tokenizer: unknown tokenizer 'worldpiece'; did you mean 'wordpiece'?");
  EXPECT_EQ(tokenizer_fault("{bpe: {vocab: v.json}}"), "x.yaml:1:35: tokenizer.bpe.merges: required key is missing");
  EXPECT_EQ(tokenizer_fault("{bpe: {vocab: v.json, merge: m.txt}}"),
            "x.yaml:1:51: tokenizer.bpe.merge: unknown key; did you mean 'merges'?");
  EXPECT_EQ(tokenizer_fault("{wordpiece: {vocab: v.txt, lower_case: 3}}").substr(0, 48),
            "x.yaml:1:68: tokenizer.wordpiece.lower_case: exp");
  EXPECT_EQ(tokenizer_fault("{bytes: {}}"), "x.yaml:1:30: tokenizer.bytes: has no keys; write tokenizer: bytes");
  EXPECT_EQ(tokenizer_fault("{sentencepiece: {}}"), "x.yaml:1:30: tokenizer.sentencepiece: needs the name of a file");
  const std::string forms = "bytes, {bpe: {vocab: F, merges: F}}, {wordpiece: {vocab: F}} or {sentencepiece: F}";
  EXPECT_EQ(tokenizer_fault("3"), "x.yaml:1:29: tokenizer: is an integer; needs " + forms);
  EXPECT_EQ(tokenizer_fault("bpe"), "x.yaml:1:29: tokenizer: 'bpe' needs files; write " + forms);
  EXPECT_EQ(tokenizer_fault("{bpe: {}, bytes: {}}"), "x.yaml:1:29: tokenizer: is a block; needs " + forms);
}

TEST(TextConfig, FileNamesAreFoundWhereverTheyStand) {
  const auto changed = [](const std::string& yaml) {
    Value value = parse_yaml(yaml, "x.yaml");
    TextDataConfig::for_each_file(value, [](std::string& file) { file = "/data/" + file; });
    return value;
  };
  EXPECT_EQ(changed("{files: [a, b], tokenizer: {bpe: {vocab: v, merges: m}}}"),
            parse_yaml("{files: [/data/a, /data/b], tokenizer: {bpe: {vocab: /data/v, merges: /data/m}}}", "y"));
  EXPECT_EQ(changed("{files: [a], tokenizer: {sentencepiece: m}}"),
            parse_yaml("{files: [/data/a], tokenizer: {sentencepiece: /data/m}}", "y"));
  EXPECT_EQ(changed("{files: a, tokenizer: bytes}"), parse_yaml("{files: a, tokenizer: bytes}", "y"));
}

TEST(TextTask, NamesAreTheirOwn) {
  for (const TextTask task : {TextTask::next_token, TextTask::masked_token}) EXPECT_EQ(task_named(name_of(task)), task);
  EXPECT_EQ(message_of<ConfigError>([] { task_named("last-token"); }), "text has no task 'last-token'");
}

class LoadText : public TokenizerFiles {
  const testing::VariableScope cache_{"TESSERA_CACHE", ""};
};

TEST_F(LoadText, SplitsByPerCentOfTheTokens) {
  TextDataConfig config;
  config.files = {write("a.txt", std::string(1001, 'a'))};
  config.sequence = 10;
  const TextSplits splits = load_text(config, 1);
  EXPECT_EQ(splits.train->size(), 900 / 10 - 1);
  EXPECT_EQ(splits.val->size(), 5);  // 50 tokens
  EXPECT_EQ(splits.test->size(), 5);  // 51 tokens
  EXPECT_EQ(splits.val->origin(0), config.files[0] + ", token 900");
  config.split = {100, 0, 0};
  EXPECT_FALSE(load_text(config, 1).val);
  EXPECT_FALSE(load_text(config, 1).test);
  config.split = {99.95, 0.05, 0};
  EXPECT_EQ(message_of<ConfigError>([&] { load_text(config, 1); }),
            config.files[0] + ": too short for its split: val has 1 of 1001 tokens; needs 2");
}

TEST_F(LoadText, AnEvaluationNeedsATokenToAskFor) {
  TextDataConfig config;
  const std::string known = "tokens and words and tokens of words and more words ";
  config.files = {write("a.txt", known + known + known + "\u0416\u0416 \u0416\u0416 \u0416\u0416 \u0416\u0416 \u0416\u0416")};
  config.sequence = 8;
  config.split = {90, 10, 0};
  config.tokenizer = parse_yaml("{wordpiece: {vocab: " + wordpiece_vocab() + ", lower_case: true}}", "x.yaml");
  for (const char* const task : {"next-token", "masked-token"}) {
    config.task = task;
    const std::string refusal = message_of<ConfigError>([&] { load_text(config, 1); });
    EXPECT_TRUE(refusal.starts_with(config.files[0] + ": val asks for none of its ")) << task << ": " << refusal;
  }
  config.task = "next-token";
  config.files = {write("b.txt", known + known + known + known)};
  EXPECT_EQ(message_of<ConfigError>([&] { load_text(config, 1); }), "");
}

TEST_F(LoadText, ACheckpointsTokenizerMustBeTheRuns) {
  TextDataConfig config;
  config.files = {write("a.txt", "The tokens of a text. " + std::string(300, ' '))};
  config.sequence = 8;
  config.task = "masked-token";
  config.split = {100, 0, 0};
  const std::string vocab = wordpiece_vocab();
  config.tokenizer = parse_yaml("{wordpiece: {vocab: " + vocab + ", lower_case: true}}", "x.yaml");
  config.files = {
      write("long.txt", real_vfs().read_file(config.files[0]) + "tokens and words and tokens of words and more words ")};
  const TextDescription about = text_description(load_text(config, 1).train->description());
  EXPECT_EQ(tokenizer_of(about)->fingerprint(), about.fingerprint);
  write("vocab.txt", real_vfs().read_file(vocab) + "another\n");
  EXPECT_TRUE(message_of<ConfigError>([&] { tokenizer_of(about); }).ends_with("are not those that the run had"));
}

}  // namespace
}  // namespace tessera
