// Attention of few queries on the CPU, as when a network generates text: a walk over keys and values where they lie, in place of
// tiles that are made for many queries.
#pragma once

#include "core/ops/attention.h"

namespace tessera::cpu {

// Whether attention_few_forward() takes them: f32 or bf16, few queries, heads of whole vectors, no dropout, no pattern.
bool are_few_queries(const AttentionOperands& operands);

// attention_forward() of such operands. Sums have one order, whatever the number of threads.
void attention_few_forward(const AttentionOperands& operands, const AttentionResults& results);

}  // namespace tessera::cpu
