// What the three families of transformers share: their sizes as keys, and the rows of their blocks.
#pragma once

#include <memory>

#include "layers/sequential.h"
#include "layers/transformer_block.h"

namespace tessera::models {

// A Config of these has layers, width, heads, an optional hidden, eps, dropout and recompute.
template <class Config>
void add_sizes(Fields& f, Config& c) {
  f.add("layers", c.layers, {.help = "blocks", .range = between(1, 4096), .example = "2", .observable = "plan"});
  f.add("width", c.width,
        {.help = "features of a position", .range = between(1, 1 << 20), .example = "384", .observable = "plan"});
  f.add("heads", c.heads,
        {.help = "of attention; they share the width", .range = between(1, 1 << 20), .example = "6", .observable = "plan"});
  f.add("hidden", c.hidden,
        {.help = "features between the two layers behind attention; 4 width without it",
         .range = between(1, 1 << 22),
         .example = "512",
         .observable = "plan"});
  f.require(c.heads < 1 || c.width % c.heads == 0, "heads", "must divide width");
}

template <class Config>
void add_eps(Fields& f, Config& c) {
  f.add("eps", c.eps, {.help = "added where norms divide", .range = positive, .example = "1.0e-6", .observable = "bytes"});
}

template <class Config>
void add_training_keys(Fields& f, Config& c) {
  f.add("dropout", c.dropout,
        {.help = "probability of zeroing what is embedded, what attention sees, and what a block adds",
         .range = {.min = 0, .max = 1, .open_max = true},
         .example = "0.1",
         .observable = "bytes"});
  f.add("recompute", c.recompute,
        {.help = "a block keeps its input alone, and is computed again in the backward: less memory, more time",
         .observable = "plan"});
}

// For a Config with an optional `sparse`.
template <class Config>
void add_sparse(Fields& f, Config& c) {
  f.add("sparse", c.sparse,
        {.help = "attention is computed of near pairs of positions and of some others, drawn once; of all pairs without it",
         .example = "{band: 128, density: 0.1}",
         .observable = "plan"});
}

// Refuses a pattern whose list of pairs would get too long. Judges only sizes that are valid one by one.
template <class Config>
void require_pattern(Fields& f, const Config& c, std::int64_t positions, bool causal) {
  const std::string reason = why_no_pattern(sparse_attention_of(c.sparse, positions), c.heads, causal);
  f.require(reason.empty(), "sparse", reason);
}

// The second name of a form is a network of published sizes, which are the form's defaults: only training keys may differ.
template <class Config>
void require_named_sizes(Fields& f, const Config& c) {
  Config named;
  named.name = Config::kNames[1];
  named.dropout = c.dropout;
  named.recompute = c.recompute;
  f.require(c.name != named.name || c == named, "name",
            str(named.name, " has the published sizes; name: ", Config::kNames[0], " takes others"));
}

template <class Config>
TransformerBlockOptions block_options(const Config& c) {
  return {.recompute = c.recompute,
          .width = c.width,
          .hidden = c.hidden.value_or(4 * c.width),
          .attention = {.heads = c.heads, .dropout = c.dropout},
          .eps = c.eps,
          .dropout = c.dropout};
}

// "0", "1", ... of equal blocks.
std::unique_ptr<Sequential> blocks_of(std::int64_t layers, const TransformerBlockOptions& options);

}  // namespace tessera::models
