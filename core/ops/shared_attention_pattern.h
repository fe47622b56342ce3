// One pattern of sparse attention for all layers with the same options: copies of a network (averages, timings, teachers) share
// its pairs.
#pragma once

#include "core/ops/attention_pattern.h"

namespace tessera {

// The pattern of these options that a layer in this process holds, or a new one. Safe for several threads. Throws what
// AttentionPattern::check() does.
AttentionPatternPtr shared_attention_pattern(const AttentionPatternOptions& options);

// Whether they draw the same pairs.
bool same_pattern(const AttentionPatternOptions& a, const AttentionPatternOptions& b);

}  // namespace tessera
