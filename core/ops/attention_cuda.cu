// A warp takes one query, or one key for the gradients of k and v. It reads the visible rows of the other side one by one. Its
// lanes share the columns of a head. Nothing is added up across warps, so every run gives the same bits.
#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/reduce.cuh"
#include "core/ops/attention.h"
#include "core/ops/dropout_math.h"

namespace tessera::cuda {
namespace {

constexpr unsigned kBlock = 128;
constexpr std::int64_t kMostColumns = 256;  // of a head: 8 for each lane

template <class T>
struct Heads {
  T* at;
  std::int64_t batch, position, head;  // strides
  __device__ T* operator()(std::int64_t b, std::int64_t p, std::int64_t h) const {
    return at + b * batch + p * position + h * head;
  }
};

struct Drop {
  double scale = 1;
  std::uint32_t threshold = 0;
  RngStream stream = {};
  const StepStateData* state = nullptr;  // null: nothing is dropped

  __device__ double factor(const AttentionForm& form, std::int64_t row, std::int64_t key) const {
    if (state == nullptr) return 1;
    const auto words = random_words(stream, dropout_step(*state), form.random_block(row, key));
    return is_kept(words[static_cast<std::size_t>(key % 4)], threshold) ? scale : 0;
  }
};

// What a pattern keeps outside its band, in units of `block` positions (AttentionPattern::OnDevice).
struct Far {
  const std::int64_t* offsets = nullptr;  // null: there is no pattern
  const std::uint16_t* keys = nullptr;
  const std::int64_t* key_offsets = nullptr;
  const std::uint16_t* queries = nullptr;
  std::int64_t units = 0, block = 1;
};

template <class T>
struct Operands {
  using Sum = Compute<T>;
  using Log = std::conditional_t<std::is_same_v<T, double>, double, float>;
  AttentionForm form;
  Heads<T> q, k, v, y, grad_y, grad_q, grad_k, grad_v;
  Log* log_sums;
  const std::uint8_t* mask;
  Drop drop;
  Far far;

  __device__ bool hidden(std::int64_t b, std::int64_t key) const { return mask != nullptr && mask[b * form.keys + key] == 0; }
};

// The columns of a head that a lane holds: lane, lane + 32, ...
template <class T, int kEach>
struct Columns {
  using Sum = Compute<T>;
  Sum at[kEach];

  __device__ static Columns zeros() {
    Columns columns;
    for (Sum& value : columns.at) value = 0;
    return columns;
  }
  __device__ static Columns load(const T* row, std::int64_t width) {
    Columns columns;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const std::int64_t c = threadIdx.x % 32 + 32 * i;
      columns.at[i] = c < width ? static_cast<Sum>(number_of(row[c])) : Sum(0);
    }
    return columns;
  }
  __device__ void store(T* row, std::int64_t width, Sum factor) const {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const std::int64_t c = threadIdx.x % 32 + 32 * i;
      if (c < width) row[c] = element_of<T>(factor * at[i]);
    }
  }
  __device__ Sum dot(const Columns& other) const {
    Sum sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) sum += at[i] * other.at[i];
    return warp_reduce<32>(sum, Plus());
  }
  __device__ void add(Sum factor, const Columns& other) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) at[i] += factor * other.at[i];
  }
  __device__ void multiply(Sum factor) {
    for (Sum& value : at) value *= factor;
  }
};

// Calls body(key) for each key that query i of head h sees.
template <class T, class Body>
__device__ void for_each_key(const Operands<T>& o, std::int64_t b, std::int64_t h, std::int64_t i, const Body& body) {
  const auto visit = [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t j = first; j < end; ++j) {
      if (!o.hidden(b, j)) body(j);
    }
  };
  visit(o.form.first_key(i), o.form.end_key(i));
  if (o.far.offsets == nullptr) return;
  const std::int64_t row = h * o.far.units + o.form.position(i) / o.far.block;
  for (std::int64_t at = o.far.offsets[row]; at < o.far.offsets[row + 1]; ++at) {
    const std::int64_t first = o.far.keys[at] * o.far.block, end = first + o.far.block;
    visit(first, end < o.form.keys ? end : o.form.keys);
  }
}

// Calls body(query) for each query of head h that sees key j. The key mask must not hide j.
template <class T, class Body>
__device__ void for_each_query(const Operands<T>& o, std::int64_t h, std::int64_t j, const Body& body) {
  for (std::int64_t i = o.form.first_query(j); i < o.form.end_query(j); ++i) {
    if (j >= o.form.first_key(i) && j < o.form.end_key(i)) body(i);
  }
  if (o.far.offsets == nullptr) return;
  const std::int64_t row = h * o.far.units + j / o.far.block;
  for (std::int64_t at = o.far.key_offsets[row]; at < o.far.key_offsets[row + 1]; ++at) {
    const std::int64_t first = o.far.queries[at] * o.far.block - o.form.position(0);
    for (std::int64_t i = first; i < first + o.far.block; ++i) {
      if (i >= 0 && i < o.form.queries) body(i);
    }
  }
}

__device__ inline std::int64_t warp_of_grid() { return (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32; }
__device__ inline std::int64_t warps_of_grid() { return std::int64_t{gridDim.x} * blockDim.x / 32; }

template <class T, int kEach>
__global__ void __launch_bounds__(kBlock) attention_forward_kernel(Operands<T> o) {
  using Sum = Compute<T>;
  using Held = Columns<T, kEach>;
  const AttentionForm& f = o.form;
  for (std::int64_t row = warp_of_grid(); row < f.batch * f.heads * f.queries; row += warps_of_grid()) {
    const std::int64_t i = row % f.queries, h = row / f.queries % f.heads, b = row / f.queries / f.heads;
    const Held q = Held::load(o.q(b, i, h), f.width);
    Held sum = Held::zeros();
    Sum top = -static_cast<Sum>(INFINITY), total = 0;
    for_each_key(o, b, h, i, [&](std::int64_t j) {
      const Sum score = static_cast<Sum>(f.scale) * q.dot(Held::load(o.k(b, j, h / f.group()), f.width));
      const Sum higher = score > top ? score : top;
      const Sum before = total == 0 ? Sum(0) : exp(top - higher), power = exp(score - higher);
      total = total * before + power;
      sum.multiply(before);
      sum.add(power * static_cast<Sum>(o.drop.factor(f, row, j)), Held::load(o.v(b, j, h / f.group()), f.width));
      top = higher;
    });
    sum.store(o.y(b, i, h), f.width, total == 0 ? Sum(0) : 1 / total);
    if (threadIdx.x % 32 == 0) o.log_sums[row] = total == 0 ? 0 : top + log(total);
  }
}

// p: a probability; grad: the gradient of its score, without the scale.
template <class Sum>
struct ScoreGradient {
  Sum p, grad;
};

template <class T, int kEach>
__device__ ScoreGradient<Compute<T>> score_gradient(const Operands<T>& o, std::int64_t row, std::int64_t key, Compute<T> inner,
                                                    const Columns<T, kEach>& q, const Columns<T, kEach>& k,
                                                    const Columns<T, kEach>& v, const Columns<T, kEach>& g) {
  using Sum = Compute<T>;
  const Sum p = exp(static_cast<Sum>(o.form.scale) * q.dot(k) - o.log_sums[row]);
  const auto kept = static_cast<Sum>(o.drop.factor(o.form, row, key));
  return {p * kept, p * (kept * g.dot(v) - inner)};
}

template <class T, int kEach>
__global__ void __launch_bounds__(kBlock) attention_backward_q_kernel(Operands<T> o) {
  using Held = Columns<T, kEach>;
  const AttentionForm& f = o.form;
  for (std::int64_t row = warp_of_grid(); row < f.batch * f.heads * f.queries; row += warps_of_grid()) {
    const std::int64_t i = row % f.queries, h = row / f.queries % f.heads, b = row / f.queries / f.heads;
    const Held q = Held::load(o.q(b, i, h), f.width), g = Held::load(o.grad_y(b, i, h), f.width);
    const Compute<T> inner = g.dot(Held::load(o.y(b, i, h), f.width));
    Held sum = Held::zeros();
    for_each_key(o, b, h, i, [&](std::int64_t j) {
      const Held k = Held::load(o.k(b, j, h / f.group()), f.width), v = Held::load(o.v(b, j, h / f.group()), f.width);
      sum.add(score_gradient<T, kEach>(o, row, j, inner, q, k, v, g).grad, k);
    });
    sum.store(o.grad_q(b, i, h), f.width, static_cast<Compute<T>>(f.scale));
  }
}

template <class T, int kEach>
__global__ void __launch_bounds__(kBlock) attention_backward_kv_kernel(Operands<T> o) {
  using Held = Columns<T, kEach>;
  const AttentionForm& f = o.form;
  for (std::int64_t unit = warp_of_grid(); unit < f.batch * f.kv_heads * f.keys; unit += warps_of_grid()) {
    const std::int64_t j = unit % f.keys, kv = unit / f.keys % f.kv_heads, b = unit / f.keys / f.kv_heads;
    const Held k = Held::load(o.k(b, j, kv), f.width), v = Held::load(o.v(b, j, kv), f.width);
    Held grad_k = Held::zeros(), grad_v = Held::zeros();
    const std::int64_t heads = o.hidden(b, j) ? 0 : f.group();
    for (std::int64_t h = kv * f.group(); h < kv * f.group() + heads; ++h) {
      for_each_query(o, h, j, [&](std::int64_t i) {
        const std::int64_t row = (b * f.heads + h) * f.queries + i;
        const Held q = Held::load(o.q(b, i, h), f.width), g = Held::load(o.grad_y(b, i, h), f.width);
        const Compute<T> inner = g.dot(Held::load(o.y(b, i, h), f.width));
        const auto [p, grad] = score_gradient<T, kEach>(o, row, j, inner, q, k, v, g);
        grad_k.add(grad, q);
        grad_v.add(p, g);
      });
    }
    grad_k.store(o.grad_k(b, j, kv), f.width, static_cast<Compute<T>>(f.scale));
    grad_v.store(o.grad_v(b, j, kv), f.width, 1);
  }
}

template <class T>
Heads<T> heads_of(const Tensor& x) {
  if (!x.defined()) return {};
  return {x.data<T>(), x.strides()[0], x.strides()[1], x.strides()[2]};
}

template <class T>
Operands<T> operands_of(const AttentionOperands& o, const AttentionResults& results, const Tensor& grad_y,
                        const AttentionGrads& grads) {
  Drop drop;
  if (o.dropout > 0) {
    drop = {1 / (1 - o.dropout), dropout_threshold(o.dropout), o.stream, static_cast<const StepStateData*>(o.step_state.raw())};
  }
  Far far;
  if (o.pattern) {
    const AttentionPattern::OnDevice& lists = o.pattern->on(o.q.device());
    far = {lists.offsets.data<std::int64_t>(),
           static_cast<const std::uint16_t*>(lists.keys.raw()),
           lists.key_offsets.data<std::int64_t>(),
           static_cast<const std::uint16_t*>(lists.queries.raw()),
           o.pattern->units(),
           o.pattern->options().block};
  }
  return {o.form,
          heads_of<T>(o.q),
          heads_of<T>(o.k),
          heads_of<T>(o.v),
          heads_of<T>(results.y),
          heads_of<T>(grad_y),
          heads_of<T>(grads.q),
          heads_of<T>(grads.k),
          heads_of<T>(grads.v),
          results.log_sums.data<typename Operands<T>::Log>(),
          o.key_mask.defined() ? o.key_mask.data<std::uint8_t>() : nullptr,
          drop,
          far};
}

// Calls body.operator()<T, kEach>(), where each lane holds kEach columns of a head.
template <class Body>
void with_columns(const AttentionOperands& o, const Body& body) {
  TESSERA_CHECK(o.form.width <= kMostColumns, ShapeError, "attention: q is ", o.q.shape(), "; heads on a GPU have at most ",
                kMostColumns, " columns");
  dispatch_numbers(o.q.dtype(), "attention", [&]<class T>() {
    if (o.form.width <= 32) return body.template operator()<T, 1>();
    if (o.form.width <= 64) return body.template operator()<T, 2>();
    if (o.form.width <= 128) return body.template operator()<T, 4>();
    body.template operator()<T, 8>();
  });
}

}  // namespace

void attention_forward(const AttentionOperands& operands, const AttentionResults& results) {
  const Device device = operands.q.device();
  const std::int64_t rows = results.log_sums.numel();
  with_columns(operands, [&]<class T, int kEach>() {
    launch("attention", device, grid_for(32 * rows, device, kBlock), attention_forward_kernel<T, kEach>,
           operands_of<T>(operands, results, {}, {}));
  });
}

void attention_backward(const AttentionOperands& operands, const AttentionResults& results, const Tensor& grad_y,
                        const AttentionGrads& grads) {
  const AttentionForm& f = operands.form;
  const Device device = operands.q.device();
  with_columns(operands, [&]<class T, int kEach>() {
    const Operands<T> all = operands_of<T>(operands, results, grad_y, grads);
    launch("attention_backward_q", device, grid_for(32 * f.batch * f.heads * f.queries, device, kBlock),
           attention_backward_q_kernel<T, kEach>, all);
    launch("attention_backward_kv", device, grid_for(32 * f.batch * f.kv_heads * f.keys, device, kBlock),
           attention_backward_kv_kernel<T, kEach>, all);
  });
}

}  // namespace tessera::cuda
