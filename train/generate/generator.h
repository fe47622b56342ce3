// Text from a network that was trained to predict the next token.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/decisions.h"
#include "core/nn/attention_cache.h"
#include "core/nn/module.h"
#include "train/data/text/tokenizer.h"
#include "train/generate/sampling.h"
#include "train/run/stop.h"

namespace tessera {

// A network's scores of the token behind a growing text. Attention layers keep the keys and values of positions that they have
// seen. Where the text is longer than the network's longest sequence, the network reads the last half of that length anew, and
// goes on from there.
class NextTokenScores {
 public:
  // `longest`: positions that the network takes. The network must outlive this, and its weights must not change.
  NextTokenScores(Module& network, std::int64_t longest, DType compute);

  // The scores of the token that follows the text so far and `tokens`, at least one of them: f32 [vocabulary], on the host.
  Tensor after(std::span<const TokenId> tokens);

 private:
  Tensor read(std::span<const TokenId> tokens);

  Module& network_;
  std::int64_t longest_;
  DType compute_;
  std::vector<TokenId> seen_;  // what the cache holds
  AttentionCache cache_;
};

// The longest sequence that a network has positions for (Module::sequence_limit), or `wanted` where that is less.
std::int64_t longest_sequence(Module& network, std::int64_t wanted);

struct GenerateOptions {
  static constexpr std::int64_t kMostTokens = 1'000'000'000;

  std::string prompt = {};  // may be empty where the tokenizer has an end of text; the text then follows that token
  std::int64_t tokens = 200;  // at most; 0 to kMostTokens
  SamplingOptions sampling = {};
  std::uint64_t seed = 0;  // the draw of token i is number i of {seed, "generate", "token"}
};

// Throws ConfigError on options that no network and no tokenizer can take.
void check(const GenerateOptions& options);

// What the text follows: the prompt's tokens, or the end of a text. Throws ConfigError where there is neither, and on a prompt
// that is no UTF-8 where the tokenizer needs it.
std::vector<TokenId> prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt);

struct Generated {
  std::int64_t prompt_tokens = 0;
  std::int64_t tokens = 0;  // that were drawn, the end of text not among them
  bool ended = false;  // by an end of text
  double seconds = 0;  // from the first token read to the last one written
};

// Gives the text out as it comes. Draws only tokens of the tokenizer's vocabulary, which have the first of the network's scores.
// `decisions` are choices of a clock for shapes that it may meet; other shapes are computed by the first algorithm of their op,
// and nothing is timed. The same network, prompt, options, decisions, computing device and number of threads give the same text.
// Throws what check() and prompt_tokens() throw; Stopped between two tokens.
Generated generate_text(Module& network, std::shared_ptr<const Tokenizer> tokenizer, DType compute,
                        const GenerateOptions& options, const DecisionMap& decisions, const StopRequest& stop,
                        const std::function<void(std::string_view)>& write);

}  // namespace tessera
