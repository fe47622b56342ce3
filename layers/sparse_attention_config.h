// Attention that is computed of some pairs of positions only: the keys that say which, and the pattern that they stand for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/config/fields.h"
#include "core/ops/attention_pattern.h"

namespace tessera {

// As a network's options have them. Near pairs are all seen, and of those beside them a share that gets smaller with the distance
// (core/ops/attention_pattern.h).
struct SparseAttentionKeys {
  std::int64_t band = 64;
  double density = 0.05;
  std::int64_t blocks = 1;
  void fields(Fields& f);
  friend bool operator==(const SparseAttentionKeys&, const SparseAttentionKeys&) = default;
};

// As a layer has them. Layers of the same keys and heads that share a seed have one pattern. The seed stands in the structure of
// a network that is saved, so that a resumed or exported one sees the same pairs.
struct SparseAttentionConfig : SparseAttentionKeys {
  std::int64_t positions = 1;
  std::optional<std::int64_t> seed = {};
  void fields(Fields& f);
};

// The config of a layer in a network for sequences of at most `positions`. Its seed is not drawn yet.
std::optional<SparseAttentionConfig> sparse_attention_of(const std::optional<SparseAttentionKeys>& keys, std::int64_t positions);

// Why there is no such pattern though each number is within its bounds, as AttentionPattern::check() says it; empty where there
// is one, where `config` is empty, and where a number is outside its bounds.
std::string why_no_pattern(const std::optional<SparseAttentionConfig>& config, std::int64_t heads, bool causal);

// A seed that is not drawn counts as 0.
AttentionPatternOptions pattern_options(const SparseAttentionConfig& config, std::int64_t heads, bool causal);

}  // namespace tessera
