#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "core/compute_type.h"
#include "core/cpu/strided.h"
#include "core/ops/arithmetic_math.h"
#include "core/ops/reduce.h"
#include "core/ops/reduce_loops.h"

namespace tessera::cpu {
namespace {

constexpr std::int64_t kColumns = 256;  // accumulators of one job: they stay in the first-level cache
constexpr std::int64_t kLanes = 16;     // independent sums of a row: they hide the latency of the additions

template <std::size_t N>
std::int64_t chunks_of(const ReduceLoops<N>& loops) {
  return (loops.kept.inner() + kColumns - 1) / kColumns;
}

template <class T, class F, std::size_t... K>
double sum_run(const F& f, const std::array<const T*, sizeof...(K)>& in, const std::array<std::int64_t, sizeof...(K)>& step,
               std::int64_t length, std::index_sequence<K...>) {
  std::array<double, kLanes> lanes{};
  std::int64_t i = 0;
  if (((step[K] == 1) && ...)) {
    for (; i + kLanes <= length; i += kLanes) {
#pragma omp simd
      for (std::int64_t j = 0; j < kLanes; ++j) {
        lanes[static_cast<std::size_t>(j)] += static_cast<double>(f(widen(in[K][i + j])...));
      }
    }
  }
  for (; i < length; ++i) lanes[static_cast<std::size_t>(i % kLanes)] += static_cast<double>(f(widen(in[K][i * step[K]])...));
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  }
  return lanes[0];
}

template <class T, class F, std::size_t... K>
void add_columns(const F& f, const std::array<const T*, sizeof...(K)>& in, const std::array<std::int64_t, sizeof...(K)>& step,
                 std::int64_t width, double* sums, std::index_sequence<K...>) {
  if (((step[K] == 1) && ...)) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) sums[i] += static_cast<double>(f(widen(in[K][i])...));
  } else {
    for (std::int64_t i = 0; i < width; ++i) sums[i] += static_cast<double>(f(widen(in[K][i * step[K]])...));
  }
}

// Adds terms [begin, end) of the sums of columns [column, column + width) at the kept index `row` to `sums`.
template <class T, std::size_t N, class F>
void add_terms(const ReduceLoops<N>& loops, const F& f, const std::array<const T*, N>& in, std::int64_t row, std::int64_t column,
               std::int64_t width, std::int64_t begin, std::int64_t end, double* sums) {
  const auto base = loops.kept.offsets(row);
  const std::int64_t run = loops.summed.inner();
  std::array<std::int64_t, N> step{};
  for (std::size_t k = 0; k < N; ++k) step[k] = (loops.rows ? loops.summed : loops.kept).inner_stride(k);
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t from = at % run;
    const std::int64_t length = std::min(run - from, end - at);
    const auto offset = loops.summed.offsets(at / run);
    std::array<const T*, N> source{};
    for (std::size_t k = 0; k < N; ++k) source[k] = in[k] + base[k] + offset[k] + (loops.rows ? from : column) * step[k];
    if (loops.rows) sums[0] += sum_run<T>(f, source, step, length, std::make_index_sequence<N>{});
    else add_columns<T>(f, source, step, width, sums, std::make_index_sequence<N>{});
    at += length;
  }
}

// Calls job(row, column, width) for the jobs [begin, end).
template <std::size_t N, class Job>
void for_each_job(const ReduceLoops<N>& loops, std::int64_t begin, std::int64_t end, Job&& job) {
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t column = i % chunks_of(loops) * kColumns;
    job(i / chunks_of(loops), column, std::min(kColumns, loops.kept.inner() - column));
  }
}

// For few results of many terms each: the terms are split over the threads, and the partial sums are added in order.
template <class T, std::size_t N, class F>
void reduce_split(const ReduceLoops<N>& loops, const F& f, const std::array<const T*, N>& in, double scale, T* out, int parts) {
  const std::int64_t jobs = loops.kept.outer() * chunks_of(loops);
  const std::int64_t width = loops.kept.inner();
  std::vector<double> sums(static_cast<std::size_t>(parts * loops.kept.outer() * width), 0.0);
  parallel_parts(loops.summed_count(), parts, [&](std::int64_t begin, std::int64_t end, int part) {
    double* mine = sums.data() + part * loops.kept.outer() * width;
    for_each_job(loops, 0, jobs, [&](std::int64_t row, std::int64_t column, std::int64_t count) {
      add_terms(loops, f, in, row, column, count, begin, end, mine + row * width + column);
    });
  });
  for (std::int64_t row = 0; row < loops.kept.outer(); ++row) {
    T* to = out + loops.kept.offsets(row)[N];
    for (std::int64_t column = 0; column < width; ++column) {
      double total = 0.0;
      for (int part = 0; part < parts; ++part) total += sums.data()[(part * loops.kept.outer() + row) * width + column];
      to[column * loops.kept.inner_stride(N)] = narrow<T>(scale * total);
    }
  }
}

template <class T, std::size_t N, class F>
void reduce_typed(const ReduceLoops<N>& loops, const F& f, const std::array<const T*, N>& in, double scale, T* out) {
  const std::int64_t jobs = loops.kept.outer() * chunks_of(loops);
  const std::int64_t work = loops.summed_count() * std::min(kColumns, loops.kept.inner());
  const int parts = static_cast<int>(std::min<std::int64_t>(parts_for(jobs * work), loops.summed_count()));
  if (parts > 1 && jobs < 4 * parts) return reduce_split(loops, f, in, scale, out, parts);
  parallel_for(jobs, std::max<std::int64_t>(1, kGrain / work), [&](std::int64_t begin, std::int64_t end) {
    for_each_job(loops, begin, end, [&](std::int64_t row, std::int64_t column, std::int64_t width) {
      std::array<double, kColumns> sums;
      std::fill_n(sums.begin(), width, 0.0);
      add_terms(loops, f, in, row, column, width, 0, loops.summed_count(), sums.data());
      const std::int64_t step = loops.kept.inner_stride(N);
      T* to = out + loops.kept.offsets(row)[N] + column * step;
      for (std::int64_t i = 0; i < width; ++i) to[i * step] = narrow<T>(scale * sums[static_cast<std::size_t>(i)]);
    });
  });
}

// y = scale * sum of f(inputs...) over the axes along which y broadcasts to the shape of the inputs.
template <class F, class... Rest>
void reduce(const char* operation, const F& f, double scale, const Tensor& y, const Tensor& first, const Rest&... rest) {
  constexpr std::size_t kInputs = 1 + sizeof...(Rest);
  const Tensor target = y.expand(first.shape());
  if (first.numel() == 0) {
    y.fill(0.0);
    return;
  }
  const std::array<Tensor, kInputs> inputs{first, rest.expand(first.shape())...};
  std::array<const Tensor*, kInputs + 1> operands{};
  for (std::size_t k = 0; k < kInputs; ++k) operands[k] = &inputs[k];
  operands[kInputs] = &target;
  const ReduceLoops<kInputs> loops(make_strided_loop<kInputs + 1>(operands));
  dispatch_floating(y.dtype(), operation, [&]<class T>() {
    std::array<const T*, kInputs> in{};
    for (std::size_t k = 0; k < kInputs; ++k) in[k] = inputs[k].template data<T>();
    reduce_typed(loops, f, in, scale, y.data<T>());
  });
}

template <class T>
std::int64_t first_maximum(const T* x, std::int64_t n) {
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < n && !std::isnan(widen(x[best])); ++i) {
    if (widen(x[i]) > widen(x[best]) || std::isnan(widen(x[i]))) best = i;
  }
  return best;
}

}  // namespace

void sum_forward(const Tensor& x, double scale, const Tensor& y) {
  reduce("sum", [](auto value) { return value; }, scale, y, x);
}

void sum_product(const Tensor& a, const Tensor& b, const Tensor& y) { reduce("sum_product", Mul{}, 1.0, y, a, b); }

void sum_quotient(const Tensor& a, const Tensor& b, const Tensor& y) { reduce("sum_quotient", Div{}, 1.0, y, a, b); }

void max_forward(const Tensor& x, const Tensor& y, const Tensor& index) {
  const std::int64_t rows = index.numel();
  const std::int64_t n = rows == 0 ? 0 : x.numel() / rows;
  dispatch_floating(x.dtype(), "max", [&]<class T>() {
    parallel_for(rows, kGrain / std::max<std::int64_t>(n, 1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* from = x.data<T>() + row * n;
        const std::int64_t best = first_maximum(from, n);
        index.data<std::int64_t>()[row] = best;
        y.data<T>()[row] = from[best];
      }
    });
  });
}

void max_backward(const Tensor& grad_y, const Tensor& index, const Tensor& grad_x) {
  const std::int64_t rows = index.numel();
  const std::int64_t n = rows == 0 ? 0 : grad_x.numel() / rows;
  grad_x.fill(0.0);
  dispatch_floating(grad_x.dtype(), "max_backward", [&]<class T>() {
    const std::int64_t* best = index.data<std::int64_t>();
    T* to = grad_x.data<T>();
    for (std::int64_t row = 0; row < rows; ++row) to[row * n + best[row]] = grad_y.data<T>()[row];
  });
}

}  // namespace tessera::cpu
