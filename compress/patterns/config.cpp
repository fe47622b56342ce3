#include "compress/patterns/config.h"

#include <algorithm>
#include <utility>

#include "compress/patterns/builtin.h"
#include "compress/patterns/n_m.h"
#include "core/support/error.h"

namespace tessera {

void PatternConfig::fields(Fields& f) {
  f.add("pattern", pattern,
        {.help = "which weights are kept together: any (unstructured), blocks of a tap, N of each M inputs, tiles (Guo et al.), "
                 "tiles and single elements, whole outputs (channel)",
         .choices = pattern_names(),
         .observable = "bytes"});
  f.add("block", block,
        {.help = "pattern: block; outputs by inputs of a block, one number or two; 16",
         .range = at_least(1),
         .example = "[8, 8]",
         .observable = "bytes"});
  f.add("n_m", n_m, {.help = "pattern: n_m; N:M, N of each M inputs; 2:4", .example = "'1:4'", .observable = "bytes"});
  f.add("group", group,
        {.help = "pattern: tile or tile_element; outputs of a tile; 64",
         .range = at_least(1),
         .example = "32",
         .observable = "bytes"});
  f.add("extra", extra,
        {.help = "pattern: tile_element; fraction of the weights that are kept as single elements; 0.05",
         .range = {.min = 0, .max = 1, .open_max = true},
         .example = "0.1",
         .observable = "bytes"});
  f.add("coupled", coupled,
        {.help = "pattern: channel; true: layers whose outputs are added up, or passed on by a depthwise convolution, are pruned "
                 "of the same ones; false",
         .example = "true",
         .observable = "bytes"});
  const bool tiles = pattern == "tile" || pattern == "tile_element";
  const auto read_by = [&](const char* key, bool given, bool reads) {
    f.require(!given || reads, key, str("has no effect with pattern: ", pattern));
  };
  read_by("block", block.has_value(), pattern == "block");
  read_by("n_m", n_m.has_value(), pattern == "n_m");
  read_by("group", group.has_value(), tiles);
  read_by("extra", extra.has_value(), pattern == "tile_element");
  read_by("coupled", coupled.has_value(), pattern == "channel");
  f.require(!n_m || parse_n_m(*n_m), "n_m", str("is ", n_m.value_or(""), "; needs N:M with 0 < N < M, such as 2:4"));
}

NOfM PatternConfig::n_m_or_default() const {
  const std::string text = n_m.value_or("2:4");
  const std::optional<NOfM> parsed = parse_n_m(text);
  TESSERA_CHECK(parsed, ConfigError, "n_m: '", text, "' is no N:M with 0 < N < M");
  return *parsed;
}

double PatternConfig::own_sparsity() const {
  if (pattern != NOfMPattern::kName) return 0;
  return parse_n_m(n_m.value_or("2:4")).value_or(NOfM()).sparsity();
}

}  // namespace tessera
