#include "layers/sparse_attention_config.h"

#include "core/support/error.h"

namespace tessera {

void SparseAttentionKeys::fields(Fields& f) {
  f.add("band", band,
        {.help = "a position sees all those less than this far away; 1: itself",
         .range = between(1, 1 << 24),
         .example = "128",
         .observable = "plan"});
  f.add("density", density,
        {.help = "of the pairs of positions beside the band: the share that is seen",
         .range = unit_interval,
         .example = "0.1",
         .observable = "plan"});
  f.add("blocks", blocks,
        {.help = "pairs are seen one by one: 1, or in blocks of 16 x 16 or 32 x 32 of them, which the band has whole too",
         .range = between(1, 32),
         .example = "16",
         .observable = "plan"});
  f.require(blocks == 1 || blocks == 16 || blocks == 32, "blocks", "must be 1, 16 or 32");
}

void SparseAttentionConfig::fields(Fields& f) {
  SparseAttentionKeys::fields(f);
  f.add("positions", positions,
        {.help = "of the longest sequence; a shorter one has the first of them",
         .range = between(1, 1 << 21),
         .example = "256",
         .observable = "plan",
         .required = true});
  f.add("seed", seed,
        {.help = "of the pairs beside the band; without it the experiment's seed and the layer's path decide",
         .range = between(0, 4294967295),
         .example = "1",
         .observable = "bytes"});
}

std::optional<SparseAttentionConfig> sparse_attention_of(const std::optional<SparseAttentionKeys>& keys, std::int64_t positions) {
  if (!keys) return {};
  SparseAttentionConfig config;
  static_cast<SparseAttentionKeys&>(config) = *keys;
  config.positions = positions;
  return config;
}

std::string why_no_pattern(const std::optional<SparseAttentionConfig>& config, std::int64_t heads, bool causal) {
  if (!config || heads < 1 || config->positions < 1 || config->band < 1 || config->density < 0 || config->density > 1) return {};
  if (config->blocks != 1 && config->blocks != 16 && config->blocks != 32) return {};
  try {
    AttentionPattern::check(pattern_options(*config, heads, causal));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

AttentionPatternOptions pattern_options(const SparseAttentionConfig& config, std::int64_t heads, bool causal) {
  return {.positions = config.positions,
          .heads = heads,
          .band = config.band,
          .density = config.density,
          .block = config.blocks,
          .causal = causal,
          .stream = RngStream(static_cast<std::uint64_t>(config.seed.value_or(0)), "sparse_attention", "pattern")};
}

}  // namespace tessera
