#include "core/ops/attention_few_cpu.h"

#include <algorithm>
#include <limits>

#include "core/compute_type.h"
#include "core/cpu/attention/problem.h"
#include "core/cpu/parallel.h"
#include "core/support/rounding.h"

namespace tessera::cpu {
namespace {

using attention::kBlockOfKeys;
using attention::kernels;
using attention::kLanes;

// A sequence of kChunks blocks or more has kChunks chunks, or up to twice as many. A shorter one has a chunk per block. More
// chunks would share work among more threads, but each chunk writes its sums to memory, from which they are joined.
constexpr std::int64_t kChunks = 32;

// The keys that any query may see, in chunks of whole blocks.
struct Chunks {
  std::int64_t first, end, size, count;

  explicit Chunks(const AttentionForm& f) {
    first = f.first_key(0) / kBlockOfKeys * kBlockOfKeys;
    end = std::max(f.end_key(f.queries - 1), first);
    const std::int64_t blocks = ceil_div(end - first, kBlockOfKeys);
    size = std::max<std::int64_t>(blocks / kChunks, 1) * kBlockOfKeys;
    count = std::max<std::int64_t>(ceil_div(end - first, size), 1);
  }
};

template <class T>
attention::HeadRows<T> heads_of(const Tensor& x, std::int64_t batch) {
  return {x.data<T>() + batch * x.strides()[0], x.strides()[1], x.strides()[2]};
}

template <class T>
attention::FewQueries<T> queries_of(const AttentionOperands& o, std::int64_t batch) {
  const std::uint8_t* const mask = o.key_mask.defined() ? o.key_mask.data<std::uint8_t>() + batch * o.form.keys : nullptr;
  return {o.form, heads_of<T>(o.q, batch), heads_of<T>(o.k, batch), heads_of<T>(o.v, batch), mask};
}

template <class T>
attention::SeeChunk<T> see_chunk() {
  if constexpr (std::is_same_v<T, float>)
    return kernels().see_chunk;
  else
    return kernels().see_chunk_bf16;
}

// Partial results of all rows over each chunk of keys.
struct Partial {
  std::int64_t rows, width, chunks, step;  // rows of a sequence; `step`: chunks, rounded up to whole vectors
  Tensor tops, totals;  // [batch, rows, step]
  Tensor y;  // [batch, chunks, rows, width]

  Partial(const AttentionForm& f, std::int64_t count)
      : rows(f.heads * f.queries), width(f.width), chunks(count), step(round_up(count, kLanes)) {
    tops = Tensor::full({f.batch, rows, step}, std::numeric_limits<float>::lowest());
    totals = Tensor::zeros({f.batch, rows, step});
    y = Tensor::empty({f.batch, chunks, rows, width});
  }
  // The sums of a chunk, from the first row of the sequence on.
  attention::FewSums of(std::int64_t batch, std::int64_t chunk) const {
    const std::int64_t at = batch * rows * step + chunk;
    return {tops.data<float>() + at, totals.data<float>() + at, y.data<float>() + (batch * chunks + chunk) * rows * width};
  }
  // Joins the chunks of a row and returns the log of the sum of its exponentials.
  float join(std::int64_t batch, std::int64_t row, float* to) const {
    const attention::FewSums all = of(batch, 0);
    const attention::ChunkSums sums{all.y + row * width, rows * width, chunks, width};
    return kernels().join_chunks(all.top + row * step, all.total + row * step, sums, to);
  }
};

// Writes y and log_sums of rows [begin, end), counted over all sequences.
template <class T>
void write_results(const AttentionForm& f, const Partial& partial, std::int64_t begin, std::int64_t end,
                   const AttentionResults& results) {
  const Tensor held = Tensor::empty({f.width});
  const Shape& strides = results.y.strides();
  for (std::int64_t at = begin; at < end; ++at) {
    const std::int64_t batch = at / partial.rows, row = at % partial.rows;
    results.log_sums.data<float>()[at] = partial.join(batch, row, held.data<float>());
    T* const to = results.y.data<T>() + batch * strides[0] + row % f.queries * strides[1] + row / f.queries * strides[2];
    for (std::int64_t c = 0; c < f.width; ++c) to[c] = narrow<T>(held.data<float>()[c]);
  }
}

template <class T>
void forward(const AttentionOperands& operands, const AttentionResults& results) {
  const AttentionForm& f = operands.form;
  const Chunks chunks(f);
  const Partial partial(f, chunks.count);
  const std::int64_t tasks = f.batch * chunks.count, pairs = f.heads * f.queries * (chunks.end - chunks.first);
  const int threads = threads_for(4.0 * static_cast<double>(f.batch * pairs) * static_cast<double>(f.width), tasks);
  parallel_parts(tasks, threads, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t batch = task / chunks.count, chunk = task % chunks.count;
      const std::int64_t first = chunks.first + chunk * chunks.size, behind = std::min(first + chunks.size, chunks.end);
      see_chunk<T>()(queries_of<T>(operands, batch), first, behind, partial.of(batch, chunk), partial.step);
    }
  });
  const std::int64_t grain = kGrain / std::max<std::int64_t>(chunks.count * f.width, 1);
  parallel_for(f.batch * partial.rows, std::max<std::int64_t>(grain, 1),
               [&](std::int64_t begin, std::int64_t end) { write_results<T>(f, partial, begin, end, results); });
}

}  // namespace

bool are_few_queries(const AttentionOperands& operands) {
  const AttentionForm& f = operands.form;
  const DType dtype = operands.q.dtype();
  return f.queries <= attention::kFewQueries && f.width % kLanes == 0 && operands.dropout == 0 && !operands.pattern &&
         (dtype == DType::f32 || dtype == DType::bf16);
}

void attention_few_forward(const AttentionOperands& operands, const AttentionResults& results) {
  if (operands.q.dtype() == DType::f32) return forward<float>(operands, results);
  forward<bfloat16>(operands, results);
}

}  // namespace tessera::cpu
