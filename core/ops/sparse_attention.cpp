#include "core/ops/sparse_attention.h"

#include "core/support/error.h"

namespace tessera {

Var sparse_attention(const Var& q, const Var& k, const Var& v, const AttentionPatternPtr& pattern,
                     const AttentionOptions& options) {
  TESSERA_CHECK(pattern && !options.pattern, ConfigError, "sparse_attention: ", pattern ? "two patterns are" : "no pattern is",
                " given; needs one, beside the options");
  AttentionOptions with_pattern = options;
  with_pattern.pattern = pattern;
  return attention(q, k, v, with_pattern);
}

}  // namespace tessera
