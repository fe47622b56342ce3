#include "layers/models/vit.h"

#include "core/support/error.h"
#include "layers/class_token.h"
#include "layers/dropout.h"
#include "layers/init.h"
#include "layers/linear.h"
#include "layers/models/chain.h"
#include "layers/models/transformer.h"
#include "layers/patches.h"
#include "layers/positions.h"

namespace tessera::models {

void Vit::fields(Fields& f) {
  add_sizes(f, *this);
  f.add("patch", patch,
        {.help = "pixels on a side of a patch; must divide those of the images",
         .range = between(1, 4096),
         .example = "4",
         .observable = "plan"});
  f.add("pool", pool,
        {.help = "what the last layer reads: a learned position in front of the patches, or the mean of the patches",
         .choices = {"class_token", "mean"},
         .observable = "plan"});
  add_sparse(f, *this);
  add_eps(f, *this);
  add_training_keys(f, *this);
  require_named_sizes(f, *this);
}

std::unique_ptr<Module> Vit::build(const Shape& input, std::int64_t classes) const {
  require_images(input, "vit");
  TESSERA_CHECK(input[1] % patch == 0 && input[2] % patch == 0, ShapeError, "vit: input is ", input, ", patch is ", patch,
                "; the patch must divide both sides of an image");
  const bool token = pool == "class_token";
  Chain chain(input);
  chain.add("patches", make_patches(input[3], width, patch, kInitialDeviation));
  if (token) chain.add<ClassToken>("class_token", {.width = width});
  chain.add<Positions>("positions", {.length = chain.shape()[1], .width = width});
  if (dropout > 0) chain.add<Dropout>("dropout", {.p = dropout});
  TransformerBlockOptions options = block_options(*this);
  options.attention.sparse = sparse_attention_of(sparse, chain.shape()[1]);
  chain.add("blocks", blocks_of(layers, options));
  chain.add("norm", make_norm("layer_norm", width, eps));
  chain.add<TokenPool>("pool", {.pool = token ? "first" : "mean"});
  return chain.add<Linear>("head", {.in = width, .out = classes, .deviation = kInitialDeviation}).finish();
}

}  // namespace tessera::models
