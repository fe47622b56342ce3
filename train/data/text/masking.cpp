#include "train/data/text/masking.h"

#include "core/support/error.h"

namespace tessera {
namespace {

constexpr float kHidden = 0.15f, kMasked = 0.8f, kRandom = 0.1f;

std::int64_t mask_of(const Tokenizer& tokenizer) {
  TESSERA_CHECK(tokenizer.mask(), ConfigError, "tokenizer ", tokenizer.name(),
                " has no mask token, which masked-token needs: [MASK] of wordpiece, <mask> of bpe and sentencepiece");
  return *tokenizer.mask();
}

}  // namespace

Masking::Masking(const Tokenizer& tokenizer, std::uint64_t seed)
    : tokenizer_(tokenizer),
      mask_(mask_of(tokenizer)),
      training_(seed, "data", "mask"),
      evaluation_(seed, "data", "mask of evaluation") {}

void Masking::apply(std::optional<std::int64_t> epoch, std::int64_t sample, std::span<std::int64_t> tokens,
                    std::span<std::int64_t> targets) const {
  const RngStream stream = epoch ? training_ : evaluation_;
  const auto step = static_cast<std::uint64_t>(epoch.value_or(0));
  const std::uint64_t first = static_cast<std::uint64_t>(sample) * tokens.size();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    targets[i] = kNoTarget;
    const auto words = random_words(stream, step, first + i);
    if (to_unit_float(words[0]) >= kHidden || tokenizer_.is_special(static_cast<TokenId>(tokens[i]))) continue;
    targets[i] = tokens[i];
    const float kind = to_unit_float(words[1]);
    if (kind < kMasked) {
      tokens[i] = mask_;
    } else if (kind < kMasked + kRandom) {
      tokens[i] = below(words[2], tokenizer_.vocabulary());
    }
  }
}

}  // namespace tessera
