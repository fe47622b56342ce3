// Attention in which each head sees the keys of a pattern alone: those near by, and random ones beside them.
#pragma once

#include "core/ops/attention.h"

namespace tessera {

// attention() (core/ops/attention.h) over the keys that `pattern` keeps: scores of these pairs, softmax over those of a query,
// the sum of their values. No matrix of scores is in memory; the backward computes the probabilities again. The time grows with
// the number of pairs, not with the square of the sequence's length. Throws what attention() does; `options` has no causal,
// window or pattern of its own.
Var sparse_attention(const Var& q, const Var& k, const Var& v, const AttentionPatternPtr& pattern,
                     const AttentionOptions& options = {});

}  // namespace tessera
