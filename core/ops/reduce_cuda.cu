#include "core/ops/reduce.h"

#include <array>
#include <limits>

#include "core/cuda/kernel/column_reduce.cuh"
#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/row_kernel.cuh"
#include "core/ops/arithmetic_math.h"
#include "core/ops/reduce_loops.h"

namespace tessera::cuda {
namespace {

struct Itself {
  template <class V>
  __device__ V operator()(V value) const { return value; }
};

// The terms of each result, and where the result is written.
template <class T, std::size_t N, class F>
struct Terms {
  using C = Compute<T>;
  ReduceLoops<N> loops;
  std::array<const T*, N> in;
  F f;
  double scale;
  T* out;

  __device__ std::array<std::int64_t, N + 1> base(std::int64_t row) const { return loops.kept.offsets(row); }
  // Offsets of the operands' elements of term `index`, on top of the base. One summed axis, the usual case, needs no division.
  __device__ std::array<std::int64_t, N + 1> offsets(std::int64_t index) const {
    std::array<std::int64_t, N + 1> at{};
    if (loops.summed.rank == (loops.rows ? 1 : 2)) {
#pragma unroll
      for (std::size_t k = 0; k < N; ++k) at[k] = index * loops.summed.strides[k][0];
      return at;
    }
    const std::int64_t run = loops.summed.inner();
    at = loops.summed.offsets(index / run);
#pragma unroll
    for (std::size_t k = 0; k < N; ++k) at[k] += index % run * loops.summed.inner_stride(k);
    return at;
  }
  template <int kWidth>
  __device__ Numbers<T, kWidth> load(const std::array<std::int64_t, N + 1>& at) const {
    std::array<Numbers<T, kWidth>, N> operands;
#pragma unroll
    for (std::size_t k = 0; k < N; ++k) operands[k] = Numbers<T, kWidth>::load(in[k] + at[k]);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if constexpr (N == 1) operands[0].at[i] = f(operands[0].at[i]);
      else operands[0].at[i] = f(operands[0].at[i], operands[1].at[i]);
    }
    return operands[0];
  }
  __device__ void finish(std::int64_t offset, double sum) const { out[offset] = element_of<T>(static_cast<C>(scale * sum)); }
};

// Split of the row sums: `parts` groups of threads share the terms of each row.
struct RowSplit {
  std::int64_t results;
  std::int64_t terms;
  std::int64_t parts;
  std::int64_t terms_per_part;
};

inline constexpr int kRowBlock = 256;
inline constexpr int kUnroll = 4;  // loads in flight per thread

template <class S, int kGroup>
__global__ void __launch_bounds__(kRowBlock)
    sum_rows_kernel(const __grid_constant__ S source, const RowSplit split, double* partials) {
  constexpr int kGroups = kRowBlock / kGroup;
  const std::int64_t jobs = split.results * split.parts;
  for (std::int64_t first = std::int64_t{blockIdx.x} * kGroups; first < jobs; first += std::int64_t{gridDim.x} * kGroups) {
    const std::int64_t job = first + threadIdx.x / kGroup;
    const auto base = source.base(min(job, jobs - 1) / split.parts);
    const std::int64_t begin = job % split.parts * split.terms_per_part;
    const std::int64_t end = job < jobs ? min(begin + split.terms_per_part, split.terms) : begin;
    double sums[kUnroll] = {};
    for (std::int64_t term = begin + threadIdx.x % kGroup; term < end; term += kUnroll * kGroup) {
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (term + u * kGroup >= end) continue;
        auto at = source.offsets(term + u * kGroup);
        for (std::size_t k = 0; k < at.size(); ++k) at[k] += base[k];
        sums[u] += static_cast<double>(source.template load<1>(at).at[0]);
      }
    }
    const double sum = RowWalk<kGroup, 1, 0>::reduce((sums[0] + sums[1]) + (sums[2] + sums[3]), Plus());
    if (threadIdx.x % kGroup != 0 || job >= jobs) continue;
    if (split.parts == 1) source.finish(base[base.size() - 1], sum);
    else partials[job] = sum;
  }
}

template <class S>
__global__ void __launch_bounds__(kRowBlock)
    finish_rows_kernel(const __grid_constant__ S source, std::int64_t parts, const double* partials) {
  const std::int64_t row = blockIdx.x;
  double sum = 0;
  for (std::int64_t part = threadIdx.x; part < parts; part += kRowBlock) sum += partials[row * parts + part];
  sum = block_reduce<kRowBlock>(sum, Plus());
  const auto base = source.base(row);
  if (threadIdx.x == 0) source.finish(base[base.size() - 1], sum);
}

template <int kGroup, class S>
void launch_row_sums(const char* name, Device device, const S& source, const RowSplit& split, double* partials) {
  constexpr std::int64_t kGroups = kRowBlock / kGroup;
  const std::int64_t blocks = std::min<std::int64_t>((split.results * split.parts + kGroups - 1) / kGroups, 0x7fffffff);
  const LaunchShape shape{dim3(static_cast<unsigned>(blocks)), dim3(kRowBlock)};
  launch(name, device, shape, sum_rows_kernel<S, kGroup>, source, split, partials);
}

template <class S>
void sum_rows(const char* name, Device device, const S& source) {
  RowSplit split{source.loops.kept.outer(), source.loops.summed_count(), 1, source.loops.summed_count()};
  if (split.terms <= 8) return launch_row_sums<1>(name, device, source, split, nullptr);
  if (split.terms <= 1024) return launch_row_sums<32>(name, device, source, split, nullptr);
  const std::int64_t blocks = std::int64_t{limits_of(device).processors} * 8;
  constexpr std::int64_t kStep = std::int64_t{kRowBlock} * kUnroll;
  const std::int64_t wanted = std::max<std::int64_t>(1, blocks / split.results);
  split.terms_per_part = ((split.terms + wanted - 1) / wanted + kStep - 1) / kStep * kStep;
  split.parts = (split.terms + split.terms_per_part - 1) / split.terms_per_part;
  const Tensor partials = states_on<double>(device, split.parts == 1 ? 0 : split.results * split.parts);
  double* const sums = static_cast<double*>(partials.raw());
  launch_row_sums<kRowBlock>(name, device, source, split, sums);
  if (split.parts == 1) return;
  const LaunchShape last{dim3(static_cast<unsigned>(split.results)), dim3(kRowBlock)};
  launch(name, device, last, finish_rows_kernel<S>, source, split.parts, sums);
}

// Sums of columns: the innermost dimension is kept.
template <class T, std::size_t N, class F>
struct SumColumns {
  using State = Sums<1>;
  template <int kWidth>
  using Item = Numbers<T, kWidth>;
  template <int kWidth>
  static constexpr int kBatch = kWidth == 8 ? 4 : 8;
  using Offsets = std::array<std::int64_t, N + 1>;
  Terms<T, N, F> terms;

  template <int kWidth>
  __device__ Offsets channel(std::int64_t outer, std::int64_t column) const {
    Offsets at = terms.base(outer);
    for (std::size_t k = 0; k < N; ++k) at[k] += column * terms.loops.kept.inner_stride(k);
    return at;
  }
  template <int kWidth>
  __device__ Item<kWidth> load(const Offsets& base, std::int64_t row, std::int64_t) const {
    Offsets at = terms.offsets(row);
    for (std::size_t k = 0; k < N; ++k) at[k] += base[k];
    return terms.template load<kWidth>(at);
  }
  template <int kWidth, int U>
  __device__ void add(const Offsets&, const Item<kWidth> (&items)[U], int count, std::int64_t, const ColumnPlace&,
                      State (&states)[kWidth]) const {
#pragma unroll
    for (int u = 0; u < U; ++u) {
      if (u >= count) continue;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) states[i].at[0] += static_cast<double>(items[u].at[i]);
    }
  }
  __device__ void finish(std::int64_t outer, std::int64_t column, const State& sum) const {
    terms.finish(terms.base(outer)[N] + column * terms.loops.kept.inner_stride(N), sum.at[0]);
  }
};

// Whether every row of every input may be read in packs of 16 bytes.
template <class T, std::size_t N>
bool takes_packs(const ReduceLoops<N>& loops, const std::array<const T*, N>& in) {
  for (std::size_t k = 0; k < N; ++k) {
    if (!is_aligned(in[k], 16) || loops.kept.inner_stride(k) != 1) return false;
    for (const auto* loop : {&loops.kept, &loops.summed}) {
      for (int i = 0; i < loop->rank; ++i) {
        const std::int64_t stride = loop->strides[k][static_cast<std::size_t>(i)];
        const bool innermost = loop == &loops.kept && i + 1 == loop->rank;
        if (!innermost && stride % kWidest<T> != 0) return false;
      }
    }
  }
  return true;
}

// y = scale * sum of f(inputs...) over the axes along which y broadcasts to the shape of the inputs.
template <class F, class... Rest>
void reduce(const char* operation, const F& f, double scale, const Tensor& y, const Tensor& first, const Rest&... rest) {
  constexpr std::size_t kInputs = 1 + sizeof...(Rest);
  if (first.numel() == 0) return y.fill(0.0);
  const Tensor target = y.expand(first.shape());
  const std::array<Tensor, kInputs> inputs{first, rest.expand(first.shape())...};
  std::array<const Tensor*, kInputs + 1> operands{};
  for (std::size_t k = 0; k < kInputs; ++k) operands[k] = &inputs[k];
  operands[kInputs] = &target;
  const ReduceLoops<kInputs> loops(make_strided_loop<kInputs + 1>(operands));
  dispatch_numbers(y.dtype(), operation, [&]<class T>() {
    std::array<const T*, kInputs> in{};
    for (std::size_t k = 0; k < kInputs; ++k) in[k] = inputs[k].template data<T>();
    const Terms<T, kInputs, F> terms{loops, in, f, scale, y.data<T>()};
    if (loops.rows) return sum_rows(operation, y.device(), terms);
    reduce_columns<T>(operation, y.device(), loops.kept.outer(), loops.summed_count(), loops.kept.inner(), takes_packs(loops, in),
                      SumColumns<T, kInputs, F>{terms});
  });
}

}  // namespace

void sum_forward(const Tensor& x, double scale, const Tensor& y) { reduce("sum", Itself(), scale, y, x); }
void sum_product(const Tensor& a, const Tensor& b, const Tensor& y) { reduce("sum_product", Mul(), 1.0, y, a, b); }
void sum_quotient(const Tensor& a, const Tensor& b, const Tensor& y) { reduce("sum_quotient", Div(), 1.0, y, a, b); }

}  // namespace tessera::cuda
