#include "core/cuda/kernel/column_reduce.cuh"
#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/row_kernel.cuh"
#include "core/ops/layer_norm.h"

namespace tessera::cuda {
namespace {

template <class T>
struct LayerNormForward {
  using C = Compute<T>;
  const T* x;
  const C* gamma;
  const C* beta;  // null in RMS norm, as is mean
  double eps;
  std::int64_t n;
  T* y;
  C* mean;
  C* inv_std;

  template <class Walk>
  __device__ void operator()(const Walk& walk, bool inside) const {
    using Values = Numbers<T, Walk::kPack>;
    constexpr bool kHeld = Walk::kPacks > 0;
    Values v[kHeld ? Walk::kPacks : 1];
    const auto again = [&](int k, std::int64_t at) {
      if constexpr (!kHeld) v[k] = Values::load(x + at);
    };
    walk.for_each([&](int k, std::int64_t at) {
      if constexpr (kHeld) v[k] = Values::load(x + at);
    });
    C centre = 0;
    if (mean != nullptr) {
      centre = mean_of<kHeld>(walk, [&](int k, std::int64_t at) {
        again(k, at);
        C sum = 0;
        for (const C value : v[k].at) sum += value;
        return sum;
      });
    }
    const C var = mean_of<kHeld>(walk, [&](int k, std::int64_t at) {
      again(k, at);
      C sum = 0;
      for (const C value : v[k].at) sum += (value - centre) * (value - centre);
      return sum;
    });
    const C scale = static_cast<C>(1.0 / sqrt(static_cast<double>(var) + eps));
    walk.for_each([&](int k, std::int64_t at) {
      again(k, at);
      const auto slope = Numbers<C, Walk::kPack>::load(gamma + walk.column_of(at));
      const auto shift = beta != nullptr ? Numbers<C, Walk::kPack>::load(beta + walk.column_of(at)) : Numbers<C, Walk::kPack>{};
      for (int i = 0; i < Walk::kPack; ++i) v[k].at[i] = (v[k].at[i] - centre) * scale * slope.at[i] + shift.at[i];
      v[k].store(y + at);
    });
    if (!inside || !walk.first()) return;
    if (mean != nullptr) mean[walk.row] = centre;
    inv_std[walk.row] = scale;
  }

  // Rows that are not held in registers have too many terms to add in C.
  template <bool kHeld, class Walk, class Term>
  __device__ C mean_of(const Walk& walk, Term&& term) const {
    using Sum = std::conditional_t<kHeld, C, double>;
    Sum sum = 0;
    walk.for_each([&](int k, std::int64_t at) { sum += static_cast<Sum>(term(k, at)); });
    return static_cast<C>(Walk::reduce(sum, Plus()) / static_cast<Sum>(n));
  }
};

template <class T>
struct LayerNormInput {
  using C = Compute<T>;
  const T* x;
  const T* g;
  const C* gamma;
  const C* mean;  // null in RMS norm
  const C* inv_std;
  std::int64_t n;
  T* grad_x;

  struct Terms {
    C plain, weighted;
  };
  struct Join {
    template <class V>
    __device__ V operator()(const V& a, const V& b) const { return {a.plain + b.plain, a.weighted + b.weighted}; }
  };
  struct LongTerms {
    double plain, weighted;
  };

  template <class Walk>
  __device__ void operator()(const Walk& walk, bool inside) const {
    run(walk, inside, [](int, const auto&, const auto&, C) {});
  }

  // Calls seen(k, g, x - mean, inv_std) for each pack k that is held in registers.
  template <class Walk, class Seen>
  __device__ void run(const Walk& walk, bool inside, Seen&& seen) const {
    using Values = Numbers<T, Walk::kPack>;
    constexpr bool kHeld = Walk::kPacks > 0;
    constexpr int kPacks = kHeld ? Walk::kPacks : 1;
    Numbers<C, Walk::kPack> a[kPacks];  // g * gamma
    Values d[kPacks];  // x - mean
    const C centre = inside && mean != nullptr ? mean[walk.row] : C(0);
    const C scale = inside ? inv_std[walk.row] : C(0);
    const auto load = [&](int k, std::int64_t at) {
      d[k] = Values::load(x + at);
      const auto here = Values::load(g + at);
      const auto slope = Numbers<C, Walk::kPack>::load(gamma + walk.column_of(at));
      for (int i = 0; i < Walk::kPack; ++i) {
        a[k].at[i] = here.at[i] * slope.at[i];
        d[k].at[i] -= centre;
      }
      if constexpr (kHeld) seen(k, here, d[k], scale);
    };
    std::conditional_t<kHeld, Terms, LongTerms> sum{};
    walk.for_each([&](int k, std::int64_t at) {
      load(k, at);
      if constexpr (!kHeld) add(a[k], d[k], sum);
    });
    if constexpr (kHeld) walk.for_each([&](int k, std::int64_t) { add(a[k], d[k], sum); });
    sum = Walk::reduce(sum, Join());
    const C offset = mean != nullptr ? static_cast<C>(sum.plain / static_cast<double>(n)) : C(0);
    const C slope = static_cast<C>(sum.weighted) * scale * scale / static_cast<C>(n);
    walk.for_each([&](int k, std::int64_t at) {
      if constexpr (!kHeld) load(k, at);
      for (int i = 0; i < Walk::kPack; ++i) d[k].at[i] = scale * (a[k].at[i] - offset - d[k].at[i] * slope);
      d[k].store(grad_x + at);
    });
  }

  template <class A, class D, class Sum>
  __device__ static void add(const A& a, const D& d, Sum& sum) {
    Terms here{};
    for (int i = 0; i < static_cast<int>(sizeof(a.at) / sizeof(C)); ++i) {
      here.plain += a.at[i];
      here.weighted += a.at[i] * d.at[i];
    }
    sum.plain += here.plain;
    sum.weighted += here.weighted;
  }
};

template <class T>
struct LayerNormParameters {
  using C = Compute<T>;
  using State = Sums<2>;
  template <int N>
  static constexpr int kBatch = N == 8 ? 2 : 4;
  template <int N>
  struct Item {
    Numbers<T, N> x, g;
    C mean, inv_std;
  };
  const T* x;
  const T* g;
  const C* mean;  // null in RMS norm, as is grad_beta
  const C* inv_std;
  std::int64_t n;
  C* grad_gamma;
  C* grad_beta;

  template <int N>
  __device__ int channel(std::int64_t, std::int64_t) const { return 0; }
  template <int N>
  __device__ Item<N> load(int, std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * n + column;
    return {Numbers<T, N>::load(x + at), Numbers<T, N>::load(g + at), mean != nullptr ? mean[row] : C(0), inv_std[row]};
  }
  template <int N, int U>
  __device__ void add(int, const Item<N> (&items)[U], int count, std::int64_t, const ColumnPlace&, State (&states)[N]) const {
    for (int i = 0; i < N; ++i) {
      C weighted = 0;
      C plain = 0;
      for (int u = 0; u < U; ++u) {
        if (u >= count) continue;
        const C here = items[u].g.at[i];
        weighted += here * ((items[u].x.at[i] - items[u].mean) * items[u].inv_std);
        plain += here;
      }
      states[i].join({{static_cast<double>(weighted), static_cast<double>(plain)}});
    }
  }
  __device__ void finish(std::int64_t, std::int64_t column, const State& sums) const {
    grad_gamma[column] = static_cast<C>(sums.at[0]);
    if (grad_beta != nullptr) grad_beta[column] = static_cast<C>(sums.at[1]);
  }
};

// Computes all gradients in one walk over x and g, if a row fits the registers of a group of threads. A thread sums its columns
// over the rows of its group. Blocks write their sums to `partials`, [blocks, n], which LayerNormParameters finishes.
template <class T, int kGroup, int N, int kPacks>
__global__ void __launch_bounds__(kGroup < 128 ? 128 : kGroup, kGroup < 128 ? 4 : 512 / kGroup)
    layer_norm_walk_kernel(const LayerNormInput<T> op, std::int64_t rows, Sums<2>* partials) {
  using C = Compute<T>;
  constexpr int kBlock = kGroup < 128 ? 128 : kGroup;
  constexpr int kRows = kBlock / kGroup;
  const unsigned group = threadIdx.x / kGroup, lane = threadIdx.x % kGroup;
  const std::int64_t column = std::int64_t{lane} * N;
  Sums<2> sums[kPacks][N];
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
#pragma unroll
    for (int i = 0; i < N; ++i) sums[k][i] = Sums<2>::none();
  }
  for (std::int64_t first = std::int64_t{blockIdx.x} * kRows; first < rows; first += std::int64_t{gridDim.x} * kRows) {
    const std::int64_t row = first + group;
    const RowWalk<kGroup, N, kPacks> walk{row, row * op.n + column, row < rows ? (row + 1) * op.n : 0, column};
    op.run(walk, row < rows, [&](int k, const auto& g, const auto& d, C inv_std) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const C here = g.at[i];
        sums[k][i].join({{static_cast<double>(here * (d.at[i] * inv_std)), static_cast<double>(here)}});
      }
    });
  }
  Sums<2>* const part = partials + std::int64_t{blockIdx.x} * op.n;
  if constexpr (kRows == 1) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const std::int64_t at = column + k * kGroup * N + i;
        if (at < op.n) part[at] = sums[k][i];
      }
    }
  } else {
    constexpr int kColumns = kGroup * N * kPacks;
    __shared__ __align__(16) std::byte room[kRows * kColumns * sizeof(Sums<2>)];
    Sums<2>* const shared = reinterpret_cast<Sums<2>*>(room);
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
#pragma unroll
      for (int i = 0; i < N; ++i) shared[group * kColumns + column + k * kGroup * N + i] = sums[k][i];
    }
    __syncthreads();
    for (int at = static_cast<int>(threadIdx.x); at < op.n; at += kBlock) {
      Sums<2> all = shared[at];
      for (int other = 1; other < kRows; ++other) all.join(shared[other * kColumns + at]);
      part[at] = all;
    }
  }
}

template <class T, int kGroup, int N, int kPacks>
void walk_once(Device device, std::int64_t rows, const LayerNormInput<T>& input, const LayerNormParameters<T>& parameters) {
  constexpr int kBlock = kGroup < 128 ? 128 : kGroup;
  // At most as many blocks as are resident at once. Beyond one block per multiprocessor, each block has 16 rows or more: the
  // partial sums are then a small part of the data.
  constexpr std::int64_t kRows = kBlock / kGroup;
  const std::int64_t processors = limits_of(device).processors;
  const std::int64_t spread = std::min((rows + kRows - 1) / kRows, processors);
  const std::int64_t blocks = std::clamp(rows / 16, spread, processors * (512 / kBlock));
  const ColumnGrid grid{.rows = rows, .columns = input.n, .parts = static_cast<int>(blocks)};
  const Tensor partials = states_on<Sums<2>>(device, blocks * input.n);
  auto* const sums = static_cast<Sums<2>*>(partials.raw());
  launch("layer_norm_backward", device, {dim3(static_cast<unsigned>(blocks)), dim3(kBlock)},
         layer_norm_walk_kernel<T, kGroup, N, kPacks>, input, rows, sums);
  finish_columns("layer_norm_backward", device, parameters, grid, sums);
}

// Runs walk_once() if the rows fit the registers, and returns whether they do. N: numbers in a pack.
template <class T, int N>
bool walks_once(Device device, std::int64_t rows, const LayerNormInput<T>& input, const LayerNormParameters<T>& parameters) {
  constexpr int kPacks = (sizeof(Compute<T>) == 8 ? 8 : 16) / N;  // 16 or 8 numbers in registers, and as many pairs of sums
  const std::int64_t packs = (input.n + N - 1) / N;
  if (packs <= 8 * kPacks) walk_once<T, 8, N, kPacks>(device, rows, input, parameters);
  else if (packs <= 32 * kPacks) walk_once<T, 32, N, kPacks>(device, rows, input, parameters);
  else if (packs <= 128 * kPacks) walk_once<T, 128, N, kPacks>(device, rows, input, parameters);
  else if (packs <= 512 * kPacks) walk_once<T, 512, N, kPacks>(device, rows, input, parameters);
  else return false;
  return true;
}

}  // namespace

void layer_norm_forward(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps, const Tensor& y, const Tensor& mean,
                        const Tensor& inv_std) {
  dispatch_numbers(x.dtype(), "layer_norm", [&]<class T>() {
    using C = Compute<T>;
    const LayerNormForward<T> op{.x = x.data<T>(),
                                 .gamma = gamma.data<C>(),
                                 .beta = static_cast<const C*>(beta.raw()),
                                 .eps = eps,
                                 .n = x.dim(1),
                                 .y = y.data<T>(),
                                 .mean = static_cast<C*>(mean.raw()),
                                 .inv_std = inv_std.data<C>()};
    launch_rows<T>("layer_norm", x.device(), x.dim(0), x.dim(1), all_aligned(x, gamma, beta, y), op);
  });
}

void layer_norm_backward(const Tensor& x, const Tensor& grad_y, const Tensor& gamma, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& grad_x, const Tensor& grad_gamma, const Tensor& grad_beta) {
  const std::int64_t rows = x.dim(0);
  const std::int64_t n = x.dim(1);
  dispatch_numbers(x.dtype(), "layer_norm_backward", [&]<class T>() {
    using C = Compute<T>;
    const T* const from = x.data<T>();
    const T* const g = grad_y.data<T>();
    const auto* const means = static_cast<const C*>(mean.raw());
    const LayerNormInput<T> input{from,
                                  g,
                                  gamma.data<C>(),
                                  means,
                                  inv_std.data<C>(),
                                  n,
                                  grad_x.defined() ? grad_x.data<T>() : nullptr};
    const LayerNormParameters<T> parameters{from,
                                            g,
                                            means,
                                            inv_std.data<C>(),
                                            n,
                                            grad_gamma.defined() ? grad_gamma.data<C>() : nullptr,
                                            static_cast<C*>(grad_beta.raw())};
    const bool aligned = all_aligned(x, grad_y, gamma, grad_x);
    if (grad_gamma.defined() && grad_x.defined() && rows > 0 && n > 0) {
      const bool packed = aligned && n % kWidest<T> == 0;
      if (packed ? walks_once<T, kWidest<T>>(x.device(), rows, input, parameters)
                 : walks_once<T, 1>(x.device(), rows, input, parameters)) {
        return;
      }
    }
    // The gradients of the parameters come first, so that grad_x may be grad_y.
    if (grad_gamma.defined()) {
      reduce_columns<T>("layer_norm_backward", x.device(), 1, rows, n, all_aligned(x, grad_y), parameters);
    }
    if (grad_x.defined()) launch_rows<T>("layer_norm_backward", x.device(), rows, n, aligned, input);
  });
}

}  // namespace tessera::cuda
