#include "layers/models/bert.h"

#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/dropout.h"
#include "layers/embedding.h"
#include "layers/init.h"
#include "layers/linear.h"
#include "layers/models/chain.h"
#include "layers/models/transformer.h"
#include "layers/positions.h"
#include "layers/segments.h"
#include "layers/tied_linear.h"

namespace tessera::models {

void Bert::fields(Fields& f) {
  add_sizes(f, *this);
  f.add("vocabulary", vocabulary,
        {.help = "tokens that there are", .range = between(1, 1 << 28), .example = "8192", .observable = "plan"});
  f.add("length", length,
        {.help = "positions of the longest sequence", .range = between(1, 1 << 24), .example = "128", .observable = "plan"});
  f.add("segments", segments,
        {.help = "kinds of segments that a position may belong to",
         .range = between(1, 1 << 20),
         .example = "1",
         .observable = "plan"});
  add_sparse(f, *this);
  add_eps(f, *this);
  add_training_keys(f, *this);
  require_named_sizes(f, *this);
  require_pattern(f, *this, length, false);
}

std::unique_ptr<Module> Bert::build(const Shape& input) const {
  TESSERA_CHECK(input.rank() == 2, ShapeError, "bert: input is ", input, "; needs tokens [n, t]");
  TransformerBlockOptions options = block_options(*this);
  options.norm_last = true;
  options.attention.sparse = sparse_attention_of(sparse, length);
  const auto norm = [this] { return make_norm("layer_norm", width, eps); };
  Chain chain(input);
  chain.add<Embedding>("tokens", {.vocabulary = vocabulary, .width = width});
  chain.add<Positions>("positions", {.length = length, .width = width});
  chain.add<Segments>("segments", {.types = segments, .width = width}).add("norm", norm());
  if (dropout > 0) chain.add<Dropout>("dropout", {.p = dropout});
  chain.add("blocks", blocks_of(layers, options));
  Chain head(chain.shape());
  head.add<Linear>("transform", {.in = width, .out = width, .deviation = kInitialDeviation});
  head.add<Gelu>("act").add("norm", norm());
  head.add<TiedLinear>("output", {.in = width, .out = vocabulary, .bias = true});
  return chain.add("head", head.finish()).finish();
}

}  // namespace tessera::models
