// Attention of several heads between the positions of a sequence (Vaswani et al., 2017), without its projections:
// x [n, t, (heads + 2 kv_heads) d], which holds queries, keys and values side by side -> y [n, t, heads d]. The input "key_mask",
// u8 [n, t], names the positions that may be seen: 0 is padding.
// With a cache (core/nn/attention_cache.h) x holds the newest positions, and their queries see those of the cache too.
#pragma once

#include <optional>

#include "core/config/fields.h"
#include "core/nn/module.h"
#include "core/ops/attention.h"
#include "layers/sparse_attention_config.h"

namespace tessera {

struct SelfAttentionConfig {
  std::int64_t heads = 1;
  std::optional<std::int64_t> kv_heads = {};  // of keys and values; as many as of queries without it
  bool causal = false;
  std::int64_t window = 0;
  std::optional<SparseAttentionConfig> sparse = {};  // in place of a window; all pairs without it
  double dropout = 0;
  std::optional<double> rotary = {};  // the base of rotary positions (Su et al., 2021); none without it
  void fields(Fields& f);
};

// No parameters. Which pairs a sparse one sees is drawn once: reset_parameters() gives it a seed, from (seed, path), unless it
// has one, and config() has it from then on. In training the mask of dropout is a pure function of (seed, path, global step,
// micro-step, head, row, key).
class SelfAttention final : public Module {
 public:
  using Config = SelfAttentionConfig;
  // Throws ConfigError unless kv_heads divides heads, on a window beside a pattern, and as AttentionPattern does.
  explicit SelfAttention(const SelfAttentionConfig& config);

  std::string_view kind() const override { return "self_attention"; }
  Value config() const override;
  // Throws ShapeError beyond the positions of a sparse one, ConfigError on a cache where attention is not causal or there is a
  // key mask, InternalError on a cache while a graph is recorded.
  Var forward(const Var& x, const Context& context) override;
  // Multiply-adds are those of both products, over the pairs of positions that see each other: t (t + 1) / 2 where attention is
  // causal, t t where it is not, fewer with a window, and the pattern's where it is sparse.
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  std::int64_t sequence_limit() const override { return config_.sparse ? config_.sparse->positions : 0; }
  void reset_parameters(std::uint64_t seed) override;

  const SelfAttentionConfig& options() const noexcept { return config_; }
  // The pattern of sparse attention, null for any other. Made when it is first asked for; layers of the same config share it.
  const AttentionPatternPtr& pattern() const;
  // Takes the seed of `other` unless it has one, and returns whether both see the same pairs. It takes nothing and returns false
  // where one of them is not sparse, where keys, heads, positions or seeds differ, and where neither has a seed.
  bool take_pairs_of(const SelfAttention& other);

 private:
  std::int64_t kv_heads() const { return config_.kv_heads.value_or(config_.heads); }
  std::int64_t all_heads() const { return config_.heads + 2 * kv_heads(); }
  void check(const Shape& input, std::int64_t first_position) const;
  AttentionOptions sight() const;  // which keys a query sees
  std::int64_t pairs_of_all_heads(std::int64_t positions) const;
  Var with_cache(const Var& qkv, const Context& context) const;

  SelfAttentionConfig config_;
  mutable AttentionPatternPtr pattern_;
};

}  // namespace tessera
