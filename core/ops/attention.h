// Scaled dot-product attention of several heads (Vaswani et al., "Attention is all you need", 2017), computed by tiles of queries
// and keys without a matrix of scores in memory (Dao et al., "FlashAttention", 2022).
#pragma once

#include <cstdint>
#include <optional>

#include "core/autograd/var.h"
#include "core/ops/attention_math.h"
#include "core/ops/attention_pattern.h"
#include "core/rng.h"

namespace tessera {

struct AttentionOptions {
  bool causal = false;  // a query sees no key behind its own position
  std::int64_t window = 0;  // a query sees keys less than this many positions away; 0: any
  std::optional<double> scale = {};  // of the scores; 1 / sqrt(width) without it
  Tensor key_mask = {};  // u8 [batch, keys], 0: no query sees the key; undefined: all are seen
  // Dropout of probabilities, scaled in training. Probability (row, key), with rows [batch, heads, queries], is kept when word
  // key % 4 of block row * ceil(keys / 4) + key / 4 of `stream`, at the number that dropout() takes from `step_state`, lies in
  // the upper 1 - dropout of its range.
  double dropout = 0;
  RngStream stream = {};
  Tensor step_state = {};  // a StepState's tensor; needed with dropout
  // Which keys a query sees, in place of causal and window. The sequences have at most its positions: they are the
  // first ones.
  AttentionPatternPtr pattern = {};
};

// q [batch, queries, heads, width], k and v [batch, keys, kv_heads, width] -> y as q: softmax(scale q k^T) v over the keys that a
// query sees, zeros where it sees none. The last query has the position of the last key. Query head h reads head h * kv_heads /
// heads of k and v (grouped-query attention, Ainslie et al., 2023); kv_heads divides heads.
//
// NaN and Inf: queries and keys are taken in blocks, and a hidden pair has probability 0 there. 0 times a NaN or Inf is NaN, so
// one in a row of v may reach every query of a block that reads it. One in a row of k reaches only the queries that see it.
//
// Backward: saves q, k, v, y and a number for each query and head, and computes the probabilities again.
//
// Rounding of bf16 on a CPU with AVX512_BF16: queries times the scale, probabilities and gradients of scores are rounded to bf16
// before they are multiplied. Sums are f32.
//
// Throws ShapeError on operands that do not fit, the pattern included, DTypeError unless f32, f64 or bf16 (f16 on a GPU),
// DeviceError where operands are on different devices, ConfigError unless 0 <= dropout < 1 and window >= 0, or where causal or
// window stand beside a pattern.
Var attention(const Var& q, const Var& k, const Var& v, const AttentionOptions& options = {});

// The same of projections that lie side by side: qkv [batch, positions, (heads + 2 kv_heads) width], first the heads of q, then
// those of k, then those of v -> y [batch, positions, heads width]. One gradient, written in place.
Var packed_attention(const Var& qkv, std::int64_t heads, std::int64_t kv_heads, const AttentionOptions& options = {});

// The number of pairs of positions that see each other, over all heads, in a sequence without a mask of keys: those that causal
// and the window of `form` leave. With a pattern, whose band is the window, the pairs beside the band are added. Null: no
// pattern.
std::int64_t attention_pairs(const AttentionForm& form, const AttentionPattern* pattern);
// The same for one sequence of `positions` positions, over all heads of the pattern.
std::int64_t attention_pairs(const AttentionPattern& pattern, std::int64_t positions);

// The arguments of the kernels. q, k, v, the gradients and y may have any strides, except that a row of a head is contiguous.
struct AttentionOperands {
  Tensor q, k, v;
  Tensor key_mask;  // undefined: all are seen
  AttentionForm form;  // of a pattern: its band
  double dropout = 0;
  RngStream stream = {};
  Tensor step_state = {};
  AttentionPatternPtr pattern = {};
};
struct AttentionResults {
  Tensor y;
  Tensor
      log_sums;  // [batch, heads, queries]: log of the sum of exp(scores); f64 beside f64, else f32; 0 of a query without a key
};
struct AttentionGrads {
  Tensor q, k, v;
};

namespace cpu {
void attention_forward(const AttentionOperands& operands, const AttentionResults& results);
void attention_backward(const AttentionOperands& operands, const AttentionResults& results, const Tensor& grad_y,
                        const AttentionGrads& grads);
}  // namespace cpu
namespace cuda {
void attention_forward(const AttentionOperands& operands, const AttentionResults& results);
void attention_backward(const AttentionOperands& operands, const AttentionResults& results, const Tensor& grad_y,
                        const AttentionGrads& grads);
}  // namespace cuda

}  // namespace tessera
