#include "train/generate/generator.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/device/precision.h"
#include "core/ops/cast.h"
#include "core/rng.h"
#include "core/support/error.h"
#include "train/data/text/new_text.h"
#include "train/generate/text_stream.h"

namespace tessera {
namespace {

constexpr std::int64_t kChunk = 256;  // tokens read at once; the memory of a forward grows with them

Tensor tensor_of(std::span<const TokenId> tokens, Device device) {
  const Tensor ids = Tensor::empty({1, static_cast<std::int64_t>(tokens.size())}, DType::i64);
  std::ranges::copy(tokens, ids.data<std::int64_t>());
  return ids.to(device);
}

}  // namespace

std::int64_t longest_sequence(Module& network, std::int64_t wanted) {
  std::int64_t longest = wanted;
  for_each_module(network, [&](const Module& module) {
    if (module.sequence_limit() > 0) longest = std::min(longest, module.sequence_limit());
  });
  return longest;
}

void check(const GenerateOptions& options) {
  TESSERA_CHECK(options.tokens >= 0 && options.tokens <= GenerateOptions::kMostTokens, ConfigError, "generate: tokens is ",
                options.tokens, "; must be 0 to ", GenerateOptions::kMostTokens);
  check(options.sampling);
}

std::vector<TokenId> prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt) {
  return tokens_to_follow(tokenizer, prompt, "generate: the prompt");
}

NextTokenScores::NextTokenScores(Module& network, std::int64_t longest, DType compute)
    : network_(network), longest_(longest), compute_(compute), cache_(longest) {}

Tensor NextTokenScores::read(std::span<const TokenId> tokens) {
  const Context context{.compute = compute_, .cache = &cache_};
  const Var scores = network_(Var(tensor_of(tokens, device_of(network_))), context);
  cache_.advance(static_cast<std::int64_t>(tokens.size()));
  const Tensor last = scores.value().slice(1, scores.value().dim(1) - 1, scores.value().dim(1));
  return cast(Var(last.contiguous()), DType::f32).value().to(Device::cpu()).reshape({scores.value().dim(2)});
}

Tensor NextTokenScores::after(std::span<const TokenId> tokens) {
  TESSERA_CHECK(!tokens.empty(), InternalError, "NextTokenScores: nothing to read");
  std::vector<TokenId> unread(tokens.begin(), tokens.end());
  if (cache_.length() + static_cast<std::int64_t>(unread.size()) > longest_) {
    seen_.insert(seen_.end(), unread.begin(), unread.end());
    const std::int64_t kept =
        std::max<std::int64_t>(1, std::min<std::int64_t>(longest_ / 2, static_cast<std::int64_t>(seen_.size())));
    unread.assign(seen_.end() - kept, seen_.end());
    seen_.clear();
    cache_ = AttentionCache(longest_);
  }
  seen_.insert(seen_.end(), unread.begin(), unread.end());
  Tensor scores;
  for (std::size_t begin = 0; begin < unread.size(); begin += kChunk) {
    scores = read(std::span(unread).subspan(begin, std::min<std::size_t>(kChunk, unread.size() - begin)));
  }
  return scores;
}

Generated generate_text(Module& network, std::shared_ptr<const Tokenizer> tokenizer, DType compute,
                        const GenerateOptions& options, const DecisionMap& decisions, const StopRequest& stop,
                        const std::function<void(std::string_view)>& write) {
  check(options);
  const NoGrad no_grad;
  // Nothing is timed: in another call a clock may choose kernels that round differently, and they may write another text.
  const DecisionScope replayed({.known = decisions});
  const ConstantWeights constant;
  std::vector<TokenId> tokens = prompt_tokens(*tokenizer, options.prompt);
  Generated result{.prompt_tokens = static_cast<std::int64_t>(tokens.size())};
  NextTokenScores scores(network, longest_sequence(network, result.prompt_tokens + options.tokens), compute);
  TextStream text(tokenizer, tokens, write);
  const RngStream stream(options.seed, "generate", "token");
  const auto begin = std::chrono::steady_clock::now();
  while (result.tokens < options.tokens) {
    if (stop.requested()) throw Stopped();
    const Tensor next = scores.after(tokens);
    const double draw = random_uniform(stream, 0, static_cast<std::uint64_t>(result.tokens));
    const auto vocabulary = static_cast<std::size_t>(std::min(next.numel(), tokenizer->vocabulary()));
    const auto id = static_cast<TokenId>(sample_token(std::span(next.data<float>(), vocabulary), options.sampling, draw));
    result.ended = tokenizer->end_of_text() == id;
    if (result.ended) break;
    ++result.tokens;
    text.add(id);
    tokens = {id};
  }
  text.end();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace tessera
