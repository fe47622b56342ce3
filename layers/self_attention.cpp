#include "layers/self_attention.h"

#include <algorithm>

#include "core/config/read.h"
#include "core/nn/attention_cache.h"
#include "core/ops/rotary.h"
#include "core/ops/shared_attention_pattern.h"
#include "core/ops/view.h"
#include "core/rng.h"
#include "core/support/counting.h"

namespace tessera {
namespace {

const SelfAttentionConfig& checked(const SelfAttentionConfig& config) {
  const std::int64_t kv_heads = config.kv_heads.value_or(config.heads);
  TESSERA_CHECK(config.heads >= 1 && kv_heads >= 1 && config.heads % kv_heads == 0, ConfigError, "self_attention: heads is ",
                config.heads, ", kv_heads is ", kv_heads, "; kv_heads must divide heads");
  TESSERA_CHECK(!config.sparse || config.window == 0, ConfigError, "self_attention: window is ", config.window,
                " and sparse is given; needs one of them");
  if (config.sparse) AttentionPattern::check(pattern_options(*config.sparse, config.heads, config.causal));
  return config;
}

// Pairs of a query and a key that it sees, in one sequence of `positions`. A query sees itself and at most reach - 1 keys before
// it. If attention is not causal, it also sees at most reach - 1 keys after it.
std::int64_t pairs(std::int64_t positions, const SelfAttentionConfig& config) {
  const std::int64_t reach = config.window == 0 ? positions : std::min(config.window, positions);
  const std::int64_t triangle = reach % 2 == 0 ? product_of({reach / 2, reach + 1}) : product_of({reach, (reach + 1) / 2});
  const std::int64_t in_front = sum_of({triangle, product_of({positions - reach, reach})});
  return config.causal ? in_front : sum_of({in_front, in_front - positions});
}

}  // namespace

void SelfAttentionConfig::fields(Fields& f) {
  f.add("heads", heads, {.help = "of the queries", .range = between(1, 1 << 20), .example = "12", .observable = "plan"});
  f.add("kv_heads", kv_heads,
        {.help = "of keys and values, which groups of query heads share; as many as heads without it",
         .range = between(1, 1 << 20),
         .example = "1",
         .observable = "plan"});
  f.add("causal", causal, {.help = "a position sees none behind its own", .observable = "plan"});
  f.add("window", window,
        {.help = "a position sees those less than this far away; 0: all",
         .range = between(0, 1 << 24),
         .example = "256",
         .observable = "plan"});
  f.add("sparse", sparse,
        {.help = "a position sees those near it and some others; all without it",
         .example = "{positions: 256, band: 64}",
         .observable = "plan"});
  f.add("dropout", dropout,
        {.help = "probability of zeroing what a position sees of another",
         .range = {.min = 0, .max = 1, .open_max = true},
         .example = "0.1",
         .observable = "bytes"});
  f.add("rotary", rotary,
        {.help = "base of the angles by which queries and keys are turned; without it they are not",
         .range = positive,
         .example = "10000",
         .observable = "bytes"});
  const std::int64_t keys = kv_heads.value_or(heads);
  f.require(heads < 1 || keys < 1 || heads % keys == 0, "kv_heads", "must divide heads");
  f.require(!sparse || window == 0, "sparse", "has a band of its own; needs window: 0");
}

SelfAttention::SelfAttention(const SelfAttentionConfig& config) : config_(checked(config)) {}

Value SelfAttention::config() const { return write(config_); }

void SelfAttention::reset_parameters(std::uint64_t seed) {
  if (!config_.sparse || config_.sparse->seed) return;
  config_.sparse->seed = random_u32(RngStream(seed, path(), "pattern"), 0, 0);
  pattern_.reset();
}

const AttentionPatternPtr& SelfAttention::pattern() const {
  if (config_.sparse && !pattern_) {
    pattern_ = shared_attention_pattern(pattern_options(*config_.sparse, config_.heads, config_.causal));
  }
  return pattern_;
}

bool SelfAttention::take_pairs_of(const SelfAttention& other) {
  if (!config_.sparse || !other.config_.sparse) return false;
  SparseAttentionConfig taken = *config_.sparse;
  if (!taken.seed) taken.seed = other.config_.sparse->seed;
  const AttentionPatternOptions theirs = pattern_options(*other.config_.sparse, other.config_.heads, other.config_.causal);
  if (!taken.seed || !same_pattern(pattern_options(taken, config_.heads, config_.causal), theirs)) return false;
  config_.sparse = taken;
  pattern_.reset();
  return true;
}

AttentionOptions SelfAttention::sight() const {
  if (config_.sparse) return {.pattern = pattern()};
  return {.causal = config_.causal, .window = config_.window};
}

void SelfAttention::check(const Shape& input, std::int64_t first_position) const {
  TESSERA_CHECK(input.rank() == 3 && input[2] % all_heads() == 0, ShapeError, "self_attention '", path(), "': input is ", input,
                "; needs [n, positions, ", all_heads(), " head widths]");
  TESSERA_CHECK(!config_.rotary || input[2] / all_heads() % 2 == 0, ShapeError, "self_attention '", path(), "': input is ", input,
                ", a head is ", input[2] / all_heads(), " wide; rotary positions need an even width");
  TESSERA_CHECK(!config_.sparse || input[1] <= config_.sparse->positions - first_position, ShapeError, "self_attention '", path(),
                "': input is ", input, ", its first position ", first_position, "; the pattern has ", config_.sparse->positions,
                " positions");
}

Var SelfAttention::forward(const Var& x, const Context& context) {
  check(x.shape(), context.first_position());
  Var qkv = x;
  if (config_.rotary) {
    const Shape heads{x.shape()[0], x.shape()[1], all_heads(), x.shape()[2] / all_heads()};
    const RotaryOptions turned{.heads = config_.heads + kv_heads(), .offset = context.first_position(), .base = *config_.rotary};
    qkv = reshape(rotary(reshape(x, heads), turned), x.shape());
  }
  if (context.cache != nullptr) return with_cache(qkv, context);
  AttentionOptions options = sight();
  if (const Tensor* const mask = context.find("key_mask")) options.key_mask = *mask;
  if (context.training && config_.dropout > 0) {
    TESSERA_CHECK(context.step != nullptr, InternalError, "self_attention '", path(), "': training without a step state");
    options.dropout = config_.dropout;
    options.stream = RngStream(context.seed, path(), "dropout");
    options.step_state = context.step->tensor();
  }
  return packed_attention(qkv, config_.heads, kv_heads(), options);
}

Var SelfAttention::with_cache(const Var& qkv, const Context& context) const {
  TESSERA_CHECK(config_.causal, ConfigError, "self_attention '", path(),
                "': not causal, so that positions change with those behind them; a cache needs causal attention");
  TESSERA_CHECK(context.find("key_mask") == nullptr, ConfigError, "self_attention '", path(),
                "': a key mask is given beside a cache, which keeps no mask of its positions; needs one of them");
  TESSERA_CHECK(!grad_enabled(), InternalError, "self_attention '", path(), "': a cache keeps no graph, and one is recorded");
  const std::int64_t n = qkv.shape()[0], t = qkv.shape()[1], width = qkv.shape()[2] / all_heads();
  const Tensor all = qkv.value().contiguous().reshape({n, t, all_heads(), width});
  const auto heads = [&](std::int64_t begin, std::int64_t count) { return all.slice(2, begin, begin + count); };
  const AttentionCache::Seen seen =
      context.cache->append(path(), heads(config_.heads, kv_heads()), heads(config_.heads + kv_heads(), kv_heads()));
  const Var y = attention(Var(heads(0, config_.heads)), Var(seen.k), Var(seen.v), sight());
  return reshape(y, {n, t, config_.heads * width});
}

std::int64_t SelfAttention::pairs_of_all_heads(std::int64_t positions) const {
  return config_.sparse ? attention_pairs(*pattern(), positions) : product_of({config_.heads, pairs(positions, config_)});
}

Shape SelfAttention::output_shape(const Shape& input, Trace* trace) const {
  check(input, 0);
  const std::int64_t width = input[2] / all_heads();
  Shape output = input;
  output.set(2, width * config_.heads);
  if (trace != nullptr) trace_leaf(trace, input, output, product_of({2, pairs_of_all_heads(input[1]), width}));
  return output;
}

}  // namespace tessera
