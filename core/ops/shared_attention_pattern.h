// One pattern of sparse attention for all who ask for the same: copies of a network, as averages, timings and teachers keep them,
// hold its pairs once.
#pragma once

#include "core/ops/attention_pattern.h"

namespace tessera {

// The pattern of these options that somebody in the process holds, or a new one. Safe for several threads. Throws what
// AttentionPattern::check() does.
AttentionPatternPtr shared_attention_pattern(const AttentionPatternOptions& options);

// Whether they draw the same pairs.
bool same_pattern(const AttentionPatternOptions& a, const AttentionPatternOptions& b);

}  // namespace tessera
