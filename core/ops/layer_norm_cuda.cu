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

  // Rows that are not held have too many terms to add in C.
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
    // First, so that grad_x may be grad_y.
    if (grad_gamma.defined()) {
      const LayerNormParameters<T> op{
          from, g, means, inv_std.data<C>(), n, grad_gamma.data<C>(), static_cast<C*>(grad_beta.raw())};
      reduce_columns<T>("layer_norm_backward", x.device(), 1, rows, n, all_aligned(x, grad_y), op);
    }
    if (!grad_x.defined()) return;
    const LayerNormInput<T> op{from, g, gamma.data<C>(), means, inv_std.data<C>(), n, grad_x.data<T>()};
    launch_rows<T>("layer_norm_backward", x.device(), rows, n, all_aligned(x, grad_y, gamma, grad_x), op);
  });
}

}  // namespace tessera::cuda
