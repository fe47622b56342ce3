// Text from small random networks. Generation with a cache draws the same tokens as generation without one.
#include "train/generate/generator.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "core/ops/arithmetic.h"
#include "core/support/error.h"
#include "layers/models/gpt.h"
#include "tests/support/message_of.h"
#include "tests/support/relative_error.h"
#include "train/data/text/byte_tokenizer.h"

namespace tessera::testing {
namespace {

constexpr std::int64_t kLongest = 24;

enum class Kind { gpt2, llama, sparse_llama, wide_gpt2, wide_llama };

// Heads of 64, as in published networks. If heads are whole vectors, attention of few queries has a separate kernel.
bool is_wide(Kind kind) { return kind == Kind::wide_gpt2 || kind == Kind::wide_llama; }

models::Gpt small_gpt(Kind kind) {
  models::Gpt config{.layers = 2, .width = 32, .heads = 4, .vocabulary = 256};
  if (is_wide(kind)) config.width = 128, config.heads = 2;
  config.length = kLongest;
  if (kind == Kind::gpt2 || kind == Kind::wide_gpt2) return config;
  if (kind == Kind::llama || kind == Kind::wide_llama) config.length.reset();
  if (kind == Kind::sparse_llama) config.sparse = SparseAttentionKeys{.band = 2, .density = 0.3};
  if (kind == Kind::wide_llama) config.window = 9;
  config.kv_heads = config.heads / 2;
  config.positions = "rotary";
  config.norm = "rms_norm";
  config.activation = "swiglu";
  config.bias = false;
  config.tied = false;
  return config;
}

// The scores are far enough apart that rounding changes no draw.
std::unique_ptr<Module> network(Kind kind = Kind::gpt2) {
  std::unique_ptr<Module> gpt = small_gpt(kind).build({1, 8});
  initialize(*gpt, 3);
  for (const NamedParameter& entry : named_parameters(*gpt)) {
    if (entry.parameter->value().rank() == 2) entry.parameter->set_value(mul_scalar(Var(entry.parameter->value()), 4.0).value());
  }
  return gpt;
}

std::vector<TokenId> some_tokens(std::int64_t count) {
  std::vector<TokenId> tokens;
  for (std::int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<TokenId>((i * 37 + 11) % 256));
  return tokens;
}

// The scores of the next token after all tokens, by one forward pass without a cache.
Tensor whole_scores(Module& network, std::span<const TokenId> tokens, DType compute = DType::f32) {
  const NoGrad no_grad;
  const Tensor ids = Tensor::empty({1, static_cast<std::int64_t>(tokens.size())}, DType::i64);
  std::ranges::copy(tokens, ids.data<std::int64_t>());
  const Tensor scores = network(Var(ids), Context{.compute = compute}).value().to(DType::f32);
  return scores.slice(1, scores.dim(1) - 1, scores.dim(1)).contiguous().reshape({scores.dim(2)});
}

void expect_close(const Tensor& got, const Tensor& expected, double tolerance) {
  EXPECT_LE(relative_error(got, expected), tolerance);
}

class Generator : public ::testing::TestWithParam<Kind> {};

// Calls check(scores of the next token with a cache, tokens before it): first for seven tokens, then after each further token.
template <class Check>
void read_one_by_one(Module& gpt, DType compute, const Check& check) {
  const NoGrad no_grad;
  const std::vector<TokenId> tokens = some_tokens(kLongest);
  NextTokenScores scores(gpt, kLongest, compute);
  const std::span all(tokens);
  check(scores.after(all.first(7)), all.first(7));
  for (std::size_t n = 8; n <= all.size(); ++n) {
    SCOPED_TRACE(n);
    check(scores.after(all.subspan(n - 1, 1)), all.first(n));
  }
}

TEST_P(Generator, ScoresEqualThoseOfAWholeForward) {
  const auto gpt = network(GetParam());
  read_one_by_one(*gpt, DType::f32, [&](const Tensor& got, std::span<const TokenId> tokens) {
    expect_close(got, whole_scores(*gpt, tokens), 1e-4);
  });
}

// Both round, but differently: the products of one position are summed in another order than those of many positions.
TEST_P(Generator, InBf16ScoresDifferFromThoseOfAWholeForwardByRounding) {
  const auto gpt = network(GetParam());
  read_one_by_one(*gpt, DType::bf16, [&](const Tensor& half, std::span<const TokenId> tokens) {
    const Tensor got = half.to(DType::f32);
    expect_close(got, whole_scores(*gpt, tokens, DType::bf16), 0.03);
    EXPECT_GT(relative_error(got, whole_scores(*gpt, tokens)), 1e-4) << "f32 does not round to bf16";
  });
}

TEST_P(Generator, BehindTheLongestSequenceTheLastHalfIsReadAnew) {
  const auto gpt = network(GetParam());
  const NoGrad no_grad;
  const std::vector<TokenId> tokens = some_tokens(kLongest + 3);
  const std::span all(tokens);
  NextTokenScores scores(*gpt, kLongest, DType::f32);
  scores.after(all.first(kLongest));
  expect_close(scores.after(all.subspan(kLongest, 1)), whole_scores(*gpt, all.subspan(kLongest + 1 - kLongest / 2, kLongest / 2)),
               1e-4);
  expect_close(scores.after(all.subspan(kLongest + 1, 2)),
               whole_scores(*gpt, all.subspan(kLongest + 1 - kLongest / 2, kLongest / 2 + 2)), 1e-4);
}

TEST_P(Generator, APromptLongerThanTheLongestSequenceIsCut) {
  const auto gpt = network(GetParam());
  const NoGrad no_grad;
  const std::vector<TokenId> tokens = some_tokens(3 * kLongest);
  NextTokenScores scores(*gpt, kLongest, DType::f32);
  expect_close(scores.after(tokens), whole_scores(*gpt, std::span(tokens).last(kLongest / 2)), 1e-4);
}

constexpr const char* kNames[]{"Gpt2", "Llama", "SparseLlama", "WideGpt2", "WideLlama"};

INSTANTIATE_TEST_SUITE_P(Blocks, Generator,
                         ::testing::Values(Kind::gpt2, Kind::llama, Kind::sparse_llama, Kind::wide_gpt2, Kind::wide_llama),
                         [](const auto& block) { return kNames[static_cast<std::size_t>(block.param)]; });

TEST(LongestSequence, IsThatOfLearnedPositionsOrOfAPattern) {
  EXPECT_EQ(longest_sequence(*network(Kind::gpt2), 100), kLongest);
  EXPECT_EQ(longest_sequence(*network(Kind::llama), 100), 100) << "of neither";
  EXPECT_EQ(longest_sequence(*network(Kind::sparse_llama), 100), kLongest);
  EXPECT_EQ(longest_sequence(*network(Kind::sparse_llama), 7), 7);
}

struct Text {
  Generated made;
  std::string text;
};

Text text_of(Module& network, const GenerateOptions& options, std::shared_ptr<const Tokenizer> tokenizer) {
  Text result;
  result.made = generate_text(network, std::move(tokenizer), DType::f32, options, {}, StopRequest(),
                              [&](std::string_view piece) { result.text += piece; });
  return result;
}
Text text_of(Module& network, const GenerateOptions& options) {
  return text_of(network, options, std::make_shared<ByteTokenizer>());
}

TEST(GenerateText, ASeedGivesOneText) {
  const auto gpt = network();
  GenerateOptions options{.prompt = "To be", .tokens = 40, .seed = 5};
  const Text first = text_of(*gpt, options);
  EXPECT_EQ(first.text.size(), 40U);
  EXPECT_EQ(first.made.prompt_tokens, 5);
  EXPECT_EQ(first.made.tokens, 40);
  EXPECT_FALSE(first.made.ended);
  EXPECT_GT(first.made.seconds, 0);
  EXPECT_EQ(text_of(*gpt, options).text, first.text);
  options.tokens = 20;
  EXPECT_EQ(text_of(*gpt, options).text, first.text.substr(0, 20)) << "fewer tokens are the first ones";
  options.seed = 6;
  EXPECT_NE(text_of(*gpt, options).text, first.text.substr(0, 20));
}

// Whoever reads need not wait for the end: what has been written when a reader gives up is the beginning of the text.
TEST(GenerateText, ComesPieceByPiece) {
  const auto gpt = network();
  const GenerateOptions options{.prompt = "To be", .tokens = 40, .seed = 5};
  const std::string whole = text_of(*gpt, options).text;
  std::string read;
  const auto read_ten = [&](std::string_view piece) {
    read += piece;
    if (read.size() >= 10) throw IoError("the reader is gone");
  };
  EXPECT_THROW(generate_text(*gpt, std::make_shared<ByteTokenizer>(), DType::f32, options, {}, StopRequest(), read_ten), IoError);
  EXPECT_LT(read.size(), 20U);
  EXPECT_EQ(read, whole.substr(0, read.size()));
}

TEST(GenerateText, GreedyTextFollowsTheGreatestScore) {
  const auto gpt = network();
  const Text made = text_of(*gpt, {.prompt = "abc", .tokens = 5, .sampling = {.temperature = 0}});
  std::vector<TokenId> tokens{'a', 'b', 'c'};
  for (const char c : made.text) {
    const Tensor scores = whole_scores(*gpt, tokens);
    const auto* const begin = scores.data<float>();
    EXPECT_EQ(static_cast<unsigned char>(c), std::max_element(begin, begin + scores.numel()) - begin);
    tokens.push_back(static_cast<unsigned char>(c));
  }
}

// A byte tokenizer with an end-of-text byte. Bytes above the vocabulary are no tokens.
class Ending final : public Tokenizer {
 public:
  explicit Ending(TokenId end, std::int64_t vocabulary = 256) : end_(end), vocabulary_(vocabulary) {}
  std::string_view name() const override { return "ending"; }
  std::int64_t vocabulary() const override { return vocabulary_; }
  void encode(std::string_view text, std::vector<TokenId>& ids) const override { bytes_.encode(text, ids); }
  std::size_t cut(std::string_view text) const override { return text.size(); }
  std::string decode(std::span<const TokenId> ids) const override { return bytes_.decode(ids); }
  std::int64_t bytes_of(TokenId) const override { return 1; }
  std::optional<TokenId> end_of_text() const override { return end_; }
  bool is_special(TokenId id) const override { return id == end_; }
  std::string fingerprint() const override { return "ending"; }
  Value config() const override { return "ending"; }

 private:
  ByteTokenizer bytes_;
  TokenId end_;
  std::int64_t vocabulary_;
};

TEST(GenerateText, AnEndOfTextEndsIt) {
  const auto gpt = network();
  const GenerateOptions options{.prompt = "To be", .tokens = 40, .seed = 5};
  const std::string all = text_of(*gpt, options).text;
  ASSERT_EQ(all.size(), 40U);
  const char last = all.at(7);
  const std::size_t end = all.find(last);
  const Text ended = text_of(*gpt, options, std::make_shared<Ending>(static_cast<unsigned char>(last)));
  EXPECT_TRUE(ended.made.ended);
  EXPECT_EQ(ended.text, all.substr(0, end)) << "the end itself is no text";
  EXPECT_EQ(ended.made.tokens, static_cast<std::int64_t>(end));
}

TEST(GenerateText, AnEmptyPromptNeedsAnEndOfTextToBeginBehind) {
  const auto gpt = network();
  EXPECT_EQ(message_of<ConfigError>([&] { text_of(*gpt, {.tokens = 3}); }),
            "generate: the prompt is empty; tokenizer bytes has no end of text to begin behind, so that it needs one");
  EXPECT_EQ(text_of(*gpt, {.tokens = 3}, std::make_shared<Ending>(10)).made.prompt_tokens, 1);
}

// A network's vocabulary may be padded. Here the network has 256 outputs and the tokenizer 64 tokens.
TEST(GenerateText, OnlyTokensOfTheTokenizerAreDrawn) {
  const auto gpt = network();
  const auto tokenizer = std::make_shared<Ending>(64, 64);
  for (const double temperature : {0.0, 1.0}) {
    const Text made = text_of(*gpt, {.prompt = "12 + 3", .tokens = 40, .sampling = {.temperature = temperature}}, tokenizer);
    EXPECT_EQ(made.text.size(), 40U);
    for (const char c : made.text) EXPECT_LT(static_cast<unsigned char>(c), 64);
  }
}

TEST(GenerateText, NoTokensAreNoText) {
  const auto gpt = network();
  EXPECT_EQ(text_of(*gpt, {.prompt = "a", .tokens = 0}).text, "");
}

TEST(GenerateText, RefusesOptionsThatCannotBe) {
  const auto error = [](const GenerateOptions& options) { return message_of<ConfigError>([&] { check(options); }); };
  EXPECT_EQ(error({}), "");
  EXPECT_EQ(error({.tokens = -1}), "generate: tokens is -1; must be 0 to 1000000000");
  EXPECT_EQ(error({.tokens = 1'000'000'001}), "generate: tokens is 1000000001; must be 0 to 1000000000");
  EXPECT_EQ(error({.sampling = {.top_k = -1}}), "top-k is -1; must be 0, which is all tokens, or more");
  const auto gpt = network();
  EXPECT_THROW(text_of(*gpt, {.prompt = "a", .tokens = -1}), ConfigError);
}

TEST(GenerateText, APromptMustBeUtf8WhereTheTokenizerNeedsIt) {
  EXPECT_EQ(message_of<ConfigError>([] { prompt_tokens(Ending(10), "a\xC3("); }),
            "generate: the prompt: byte 1 is no UTF-8, which tokenizer ending needs");
  EXPECT_EQ(prompt_tokens(ByteTokenizer(), "a\xC3("), (std::vector<TokenId>{'a', 0xC3, '('}));
}

}  // namespace
}  // namespace tessera::testing
