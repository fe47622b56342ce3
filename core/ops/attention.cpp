#include "core/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/device/dispatch.h"
#include "core/ops/dense_operands.h"
#include "core/ops/operands.h"

namespace tessera {
namespace {

struct Packing {
  std::int64_t heads, kv_heads, width;

  // Views of q, k and v, or of their gradients, in one contiguous tensor.
  AttentionGrads parts(const Tensor& packed) const {
    const Tensor all = packed.reshape({packed.dim(0), packed.dim(1), heads + 2 * kv_heads, width});
    return {all.slice(2, 0, heads), all.slice(2, heads, heads + kv_heads), all.slice(2, heads + kv_heads, heads + 2 * kv_heads)};
  }
};

class AttentionOp final : public Op {
 public:
  AttentionOp(AttentionOperands operands, AttentionResults results, std::optional<Packing> packing)
      : operands_(std::move(operands)), results_(std::move(results)), packing_(packing) {}
  std::string_view name() const override { return operands_.pattern ? "sparse_attention" : "attention"; }

  Grads backward(const Tensor& grad_y, NeedsGrad) override {
    const Tensor g = grad_y.reshape(results_.y.shape());
    if (packing_) {
      const std::int64_t columns = (packing_->heads + 2 * packing_->kv_heads) * packing_->width;
      Tensor grad = Tensor::empty({operands_.form.batch, operands_.form.queries, columns}, g.dtype(), g.device());
      TESSERA_DISPATCH(g.device(), attention_backward, operands_, results_, g, packing_->parts(grad));
      return {std::move(grad)};
    }
    const auto like = [&](const Tensor& x) { return Tensor::empty(x.shape(), x.dtype(), x.device()); };
    AttentionGrads grads{like(operands_.q), like(operands_.k), like(operands_.v)};
    TESSERA_DISPATCH(g.device(), attention_backward, operands_, results_, g, grads);
    return {grads.q, grads.k, grads.v};
  }

  // Multiply-adds of the scores and of their product with v, over the pairs of a query and a key that it sees.
  std::int64_t multiply_adds(const Shape&) const override {
    return 2 * operands_.form.batch * operands_.form.width * attention_pairs(operands_.form, operands_.pattern.get());
  }

 private:
  AttentionOperands operands_;
  AttentionResults results_;
  std::optional<Packing> packing_;
};

void check_options(const Tensor& q, std::int64_t batch, std::int64_t keys, const AttentionOptions& options) {
  TESSERA_CHECK(options.dropout >= 0 && options.dropout < 1, ConfigError, "attention: dropout is ", options.dropout,
                "; needs 0 <= dropout < 1");
  TESSERA_CHECK(options.window >= 0, ConfigError, "attention: window is ", options.window, "; needs 0 or more");
  TESSERA_CHECK(options.dropout == 0 || options.step_state.defined(), ConfigError, "attention: dropout is ", options.dropout,
                "; needs the state of a step to draw from");
  if (options.dropout > 0) check_companion("attention", "q", q, "step_state", options.step_state, options.step_state.dtype());
  if (!options.key_mask.defined()) return;
  check_companion("attention", "q", q, "key_mask", options.key_mask, DType::u8);
  TESSERA_CHECK(options.key_mask.shape() == Shape({batch, keys}), ShapeError, "attention: key_mask is ", options.key_mask.shape(),
                ", k has ", keys, " keys in ", batch, " sequences; needs [batch, keys]");
}

void check_pattern(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  TESSERA_CHECK(!options.causal && options.window == 0, ConfigError, "attention: causal or window is given beside a pattern",
                "; needs one of them, because a pattern is causal or not, and has a band");
  const AttentionPatternOptions& pattern = options.pattern->options();
  TESSERA_CHECK(q.dim(2) == pattern.heads && k.dim(1) <= pattern.positions && q.dim(1) <= k.dim(1), ShapeError,
                "attention: q is ", q.shape(), ", k is ", k.shape(), ", the pattern has ", pattern.heads, " heads and ",
                pattern.positions, " positions; needs its heads, at most its positions, and no more queries than keys");
}

Tensor with_whole_rows(const Tensor& x) { return x.rank() == 4 && x.strides()[3] == 1 ? x : x.contiguous(); }

AttentionOperands operands_of(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  check_operands("attention", {{"q", q}, {"k", k}, {"v", v}});
  const bool fits = q.rank() == 4 && k.rank() == 4 && k.shape() == v.shape() && q.dim(0) == k.dim(0) && q.dim(3) == k.dim(3) &&
                    k.dim(2) > 0 && q.dim(2) % k.dim(2) == 0;
  TESSERA_CHECK(fits, ShapeError, "attention: q is ", q.shape(), ", k is ", k.shape(), ", v is ", v.shape(),
                "; needs [batch, queries, heads, width], twice [batch, keys, kv_heads, width], and kv_heads that divide heads");
  check_options(q, q.dim(0), k.dim(1), options);
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(q.dim(3), 1))));
  // A window as long as the longer sequence hides nothing. A longer window could overflow when it is added to positions.
  const std::int64_t window = std::min(options.window, std::max(q.dim(1), k.dim(1)));
  AttentionForm form{q.dim(0), q.dim(1), k.dim(1), q.dim(2), k.dim(2), q.dim(3), options.causal, window, scale};
  if (options.pattern) {
    check_pattern(q, k, options);
    const AttentionPatternOptions& pattern = options.pattern->options();
    form.causal = pattern.causal, form.window = pattern.band, form.block = pattern.block;
  }
  const Tensor mask = options.key_mask.defined() ? options.key_mask.contiguous() : Tensor();
  return {with_whole_rows(q), with_whole_rows(k), with_whole_rows(v), mask,           form,
          options.dropout,    options.stream,     options.step_state, options.pattern};
}

AttentionResults forward(const AttentionOperands& operands) {
  const auto& [batch, queries, keys, heads, kv_heads, width, causal, window, scale, block] = operands.form;
  const DType dtype = operands.q.dtype();
  const Device device = operands.q.device();
  AttentionResults results{Tensor::empty({batch, queries, heads, width}, dtype, device),
                           Tensor::empty({batch, heads, queries}, dtype == DType::f64 ? dtype : DType::f32, device)};
  TESSERA_DISPATCH(device, attention_forward, operands, results);
  return results;
}

}  // namespace

std::int64_t attention_pairs(const AttentionForm& form, const AttentionPattern* pattern) {
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < form.queries; ++i) {
    pairs += form.heads * std::max<std::int64_t>(0, form.end_key(i) - form.first_key(i));
  }
  return pattern == nullptr ? pairs : pairs + pattern->count(form.queries, form.keys);
}

std::int64_t attention_pairs(const AttentionPattern& pattern, std::int64_t positions) {
  const AttentionPatternOptions& o = pattern.options();
  return attention_pairs({.batch = 1,
                          .queries = positions,
                          .keys = positions,
                          .heads = o.heads,
                          .kv_heads = o.heads,
                          .width = 1,
                          .causal = o.causal,
                          .window = o.band,
                          .scale = 1,
                          .block = o.block},
                         &pattern);
}

Var attention(const Var& q, const Var& k, const Var& v, const AttentionOptions& options) {
  const AttentionOperands operands = operands_of(q.value(), k.value(), v.value(), options);
  const AttentionResults results = forward(operands);
  return record(std::make_unique<AttentionOp>(operands, results, std::nullopt), {q, k, v}, results.y);
}

Var packed_attention(const Var& qkv, std::int64_t heads, std::int64_t kv_heads, const AttentionOptions& options) {
  const Shape& shape = qkv.shape();
  const std::int64_t all = heads + 2 * kv_heads;
  TESSERA_CHECK(shape.rank() == 3 && heads > 0 && kv_heads > 0 && shape[2] % all == 0, ShapeError, "packed_attention: qkv is ",
                shape, ", heads ", heads, ", kv_heads ", kv_heads,
                "; needs [batch, positions, (heads + 2 kv_heads) width] and at least one head of each");
  const Packing packing{heads, kv_heads, shape[2] / all};
  const AttentionGrads parts = packing.parts(qkv.value().contiguous());
  const AttentionOperands operands = operands_of(parts.q, parts.k, parts.v, options);
  const AttentionResults results = forward(operands);
  return record(std::make_unique<AttentionOp>(operands, results, packing), {qkv},
                results.y.reshape({shape[0], shape[1], heads * packing.width}));
}

}  // namespace tessera
