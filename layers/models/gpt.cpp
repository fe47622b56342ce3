#include "layers/models/gpt.h"

#include <cmath>

#include "core/support/error.h"
#include "layers/dropout.h"
#include "layers/embedding.h"
#include "layers/init.h"
#include "layers/linear.h"
#include "layers/models/chain.h"
#include "layers/models/transformer.h"
#include "layers/positions.h"
#include "layers/tied_linear.h"

namespace tessera::models {
namespace {

constexpr double kRotaryBase = 10000;

void add_position_keys(Fields& f, Gpt& c) {
  f.add("positions", c.positions,
        {.help = "how blocks know them: rows of a table are added to the tokens, or queries and keys are turned by angles",
         .choices = {"learned", "rotary"},
         .observable = "plan"});
  f.add("length", c.length,
        {.help = "positions of the longest sequence, for learned positions and sparse attention; 1024 without it",
         .range = between(1, 1 << 24),
         .example = "256",
         .observable = "plan"});
  f.add("rotary_base", c.rotary_base,
        {.help = "of the angles, for rotary positions; 10000 without it",
         .range = positive,
         .example = "500000",
         .observable = "bytes"});
  f.add("window", c.window,
        {.help = "a position sees those less than this far in front of it; 0: all",
         .range = between(0, 1 << 24),
         .example = "128",
         .observable = "plan"});
  add_sparse(f, c);
  f.require(!c.sparse || c.window == 0, "sparse", "has a band of its own; needs window: 0");
  f.require(!c.length || c.positions == "learned" || c.sparse, "length",
            "rotary positions have no table; needs positions: learned, or sparse");
  f.require(!c.rotary_base || c.positions == "rotary", "rotary_base", "needs positions: rotary");
}

TransformerBlockOptions options_of(const Gpt& config) {
  TransformerBlockOptions options = block_options(config);
  options.attention.kv_heads = config.kv_heads;
  options.attention.causal = true;
  options.attention.window = config.window;
  options.attention.sparse = sparse_attention_of(config.sparse, config.length.value_or(Gpt::kLength));
  if (config.positions == "rotary") options.attention.rotary = config.rotary_base.value_or(kRotaryBase);
  options.activation = config.activation;
  options.norm = config.norm;
  options.bias = config.bias;
  options.last_deviation = kInitialDeviation / std::sqrt(2.0 * static_cast<double>(config.layers));
  return options;
}

}  // namespace

void Gpt::fields(Fields& f) {
  add_sizes(f, *this);
  f.add("kv_heads", kv_heads,
        {.help = "of keys and values, which groups of query heads share; as many as heads without it",
         .range = between(1, 1 << 20),
         .example = "1",
         .observable = "plan"});
  f.add("vocabulary", vocabulary,
        {.help = "tokens that there are", .range = between(1, 1 << 28), .example = "8192", .observable = "plan"});
  add_position_keys(f, *this);
  f.add("norm", norm, {.help = "of the blocks and behind them", .choices = {"layer_norm", "rms_norm"}, .observable = "plan"});
  f.add("activation", activation,
        {.help = "between the two layers behind attention; swiglu makes the first of them twice as wide",
         .choices = {"gelu_tanh", "gelu", "relu", "swiglu"},
         .observable = "plan"});
  f.add("bias", bias, {.help = "linear layers add a trained offset", .observable = "plan"});
  f.add("tied", tied, {.help = "the last layer reads the table of the tokens", .observable = "plan"});
  add_eps(f, *this);
  add_training_keys(f, *this);
  require_named_sizes(f, *this);
  require_pattern(f, *this, length.value_or(kLength), true);
  const std::int64_t keys = kv_heads.value_or(heads);
  f.require(keys < 1 || heads < 1 || heads % keys == 0, "kv_heads", "must divide heads");
  f.require(positions != "rotary" || heads < 1 || width / heads % 2 == 0, "heads",
            "width / heads must be even for rotary positions");
}

std::unique_ptr<Module> Gpt::build(const Shape& input) const {
  TESSERA_CHECK(input.rank() == 2, ShapeError, "gpt: input is ", input, "; needs tokens [n, t]");
  Chain chain(input);
  chain.add<Embedding>("tokens", {.vocabulary = vocabulary, .width = width});
  if (positions == "learned") {
    chain.add<Positions>("positions", {.length = length.value_or(kLength), .width = width});
  }
  if (dropout > 0) chain.add<Dropout>("dropout", {.p = dropout});
  chain.add("blocks", blocks_of(layers, options_of(*this)));
  chain.add("norm", make_norm(norm, width, eps));
  if (tied) return chain.add<TiedLinear>("head", {.in = width, .out = vocabulary}).finish();
  return chain.add<Linear>("head", {.in = width, .out = vocabulary, .bias = false, .deviation = kInitialDeviation}).finish();
}

}  // namespace tessera::models
