// What BERT hides of a text (Devlin et al. 2019, section 3.1): of 15 % of the tokens the network has to tell what they were; of
// these, 80 % are the mask token, 10 % a random one of the vocabulary, 10 % themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/rng.h"
#include "train/data/text/tokenizer.h"

namespace tessera {

class Masking {
 public:
  static constexpr std::int64_t kNoTarget = -100;  // nothing is to be said

  // `tokenizer` must outlive it. Throws ConfigError on one without a mask token.
  Masking(const Tokenizer& tokenizer, std::uint64_t seed);

  // Hides some of `tokens` in place, and writes what they were, else kNoTarget, to `targets`, which is as long. A function of
  // (seed, epoch, sample, position) in training, of (seed, sample, position) without an epoch. Special tokens are never hidden.
  void apply(std::optional<std::int64_t> epoch, std::int64_t sample, std::span<std::int64_t> tokens,
             std::span<std::int64_t> targets) const;

 private:
  const Tokenizer& tokenizer_;
  std::int64_t mask_;
  RngStream training_, evaluation_;
};

}  // namespace tessera
