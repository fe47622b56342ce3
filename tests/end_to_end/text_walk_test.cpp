// A user's walk with text: from `init` to generated text and a table, with each tokenizer, in bf16.
#include <gtest/gtest.h>

#include "core/config/value.h"
#include "core/cpu/onednn_version.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"
#include "tests/end_to_end/small_text.h"
#include "tests/train/data/text/tokenizer_files.h"

namespace tessera::testing {
namespace {

using Texts = std::vector<std::string>;

// `folder` holds tokenizer files and text.
class TextWalk : public TokenizerFiles {
 protected:
  void SetUp() override {
    write("a.txt", numbered_lines(90, "beer"));
    write("b.txt", numbered_lines(90, "water"));
    write("gpt.yaml", kSmallGpt);
  }

  Texts environment() const { return {"TESSERA_CACHE=" + folder / "cache"}; }
  Outcome run(const Texts& arguments) const { return run_program(arguments, environment()); }
  std::string done(const Texts& arguments) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return outcome.output;
  }
  Texts train(const std::string& runs, const Texts& overrides) const {
    return joined({"train", folder / "gpt.yaml", "--runs", folder / runs}, overrides);
  }
  std::string run_in(const std::string& runs) const { return folder / (runs + "/gpt/1"); }
};

TEST_F(TextWalk, FromInitToATextAndATable) {
  expect_outcome(run({"init", folder / "mine", "--from", "gpt-text", "--root", folder / "a.txt"}), 0, "next: tessera data check");
  const std::string file = folder / "mine.yaml", trained = folder / "runs/mine/1";
  expect_in(read_bytes(file), "files: [\"a.txt\"]");
  expect_in(done({"data", "check", file}), "clean");
  expect_in(done({"validate", file}), "ok");
  // The file is unchanged except for fewer steps.
  done({"train", file, "--runs", folder / "runs", "stages[0].train=6s", "stages[1].train=4s", "schedule.warmup=2s",
        "stages[1].factorise.keep=always"});
  expect_in(done({"generate", trained, "--prompt", "9 bottles", "--tokens", "20"}), "20 tokens behind 9 of the prompt");
  const std::string table = done({"table", trained});
  expect_in(table, "nats/token");
  expect_in(table, "svd");
  expect_outcome(run({"init", folder / "other", "--from", "gpt-text", "--root", folder / "none.txt"}), 2,
                 "none.txt: No such file");
}

class TextTokenizers : public TextWalk, public ::testing::WithParamInterface<const char*> {
 protected:
  std::string block() const {
    const std::string name = GetParam();
    if (name == "bpe") return "{bpe: {vocab: \"" + bpe_vocab() + "\", merges: \"" + bpe_merges() + "\"}}";
    if (name == "wordpiece") return "{wordpiece: {vocab: \"" + wordpiece_vocab() + "\"}}";
    return "{sentencepiece: \"" + sentencepiece_model("unigram") + "\"}";
  }
};

TEST_P(TextTokenizers, AreCheckedTrainedResumedEvaluatedAndWritten) {
  const std::string checked = done({"data", "check", folder / "gpt.yaml", "data.tokenizer=" + block(), "--json"});
  const std::int64_t vocabulary = parse_json(checked, "data check").at("vocabulary").as_int();
  EXPECT_NE(vocabulary, 256) << "that of bytes";
  const Texts overrides{"data.tokenizer=" + block(), str("model.vocabulary=", vocabulary), "stages[0].train=8s"};
  done(train("straight", overrides));
  ASSERT_NO_FATAL_FAILURE(train_killed_and_resumed(train("killed", overrides), run_in("killed"), {"step:6"}, environment()));
  const auto result = [](const std::string& run) { return tensors_of(run) + read_bytes(run + "/metrics.jsonl"); };
  EXPECT_TRUE(result(run_in("killed")) == result(run_in("straight")));
  expect_in(done({"eval", run_in("straight")}), "bits/byte");
  const Texts asked{"generate", run_in("straight"), "--prompt", "9 bottles", "--tokens", "12", "--seed", "4"};
  const std::string text = done(asked);
  expect_in(text, " of the prompt");
  EXPECT_EQ(done(asked).substr(0, text.find(" tokens behind ")), text.substr(0, text.find(" tokens behind ")));
  expect_in(done({"generate", run_in("straight"), "--tokens", "5"}), " tokens behind ");  // starts after an end of text
}

INSTANTIATE_TEST_SUITE_P(Kinds, TextTokenizers, ::testing::Values("bpe", "wordpiece", "sentencepiece"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_F(TextWalk, InBf16ARunIsResumedToTheSameBytesAndWritesOneText) {
  if (!cpu::onednn_has_bf16()) GTEST_SKIP() << "the processor has neither avx512_bf16 nor AMX";
  const Texts bf16{"precision=bf16"};
  done(train("straight", bf16));
  ASSERT_NO_FATAL_FAILURE(train_killed_and_resumed(train("killed", bf16), run_in("killed"), {"step:13"}, environment()));
  EXPECT_TRUE(tensors_of(run_in("killed")) == tensors_of(run_in("straight")));
  done(train("single", {}));
  EXPECT_FALSE(tensors_of(run_in("single")) == tensors_of(run_in("straight")));
  const Texts asked{"generate", run_in("straight"), "--prompt", "9 bottles", "--tokens", "30", "--seed", "4"};
  const auto text_of = [](const std::string& output) {
    return output.substr(0, output.rfind('\n', output.find(" tokens behind ")));
  };
  const std::string text = text_of(done(asked));
  EXPECT_EQ(text.size(), 30U) << "a byte a token";
  EXPECT_EQ(text_of(done(asked)), text) << "a seed gives one text";
}

}  // namespace
}  // namespace tessera::testing
