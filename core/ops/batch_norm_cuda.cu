#include "core/cuda/kernel/column_map.cuh"
#include "core/cuda/kernel/column_reduce.cuh"
#include "core/cuda/kernel/compute_types.cuh"
#include "core/ops/batch_norm.h"

namespace tessera::cuda {
namespace {

// Running count, mean and sum of squared deviations of one channel.
struct Moments {
  double count;
  double mean;
  double m2;

  __device__ static Moments none() { return {}; }
  // Chan, Golub & LeVeque 1983, "Algorithms for computing the sample variance", eq. 2.1.
  __device__ void join(const Moments& other) {
    if (other.count == 0) return;
    const double total = count + other.count;
    const double share = other.count / total;
    const double delta = other.mean - mean;
    mean += delta * share;
    m2 += other.m2 + delta * delta * count * share;
    count = total;
  }
};

template <class T>
struct BatchStatistics {
  using C = Compute<T>;
  using State = Moments;
  template <int N>
  using Item = Numbers<T, N>;
  template <int N>
  static constexpr int kBatch = N == 8 ? 4 : 8;
  const T* x;
  std::int64_t columns;
  C* mean;
  C* var;

  template <int N>
  __device__ int channel(std::int64_t, std::int64_t) const { return 0; }
  template <int N>
  __device__ Item<N> load(int, std::int64_t row, std::int64_t column) const {
    return Item<N>::load(x + row * columns + column);
  }

  // Deviations from the mean of the items stay exact even if that mean is large. Their sum gives the rounding error of the mean.
  template <int N, int U>
  __device__ void add(int, const Item<N> (&items)[U], int count, std::int64_t, const ColumnPlace&, State (&states)[N]) const {
    const C share = C(1) / static_cast<C>(count);
    const double before = states[0].count;  // the same in all columns
    const double both = before + count;
    const double weight = count / both;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      C sum = 0;
#pragma unroll
      for (int u = 0; u < U; ++u) sum += u < count ? items[u].at[i] : C(0);
      const C centre = sum * share;
      C error = 0;
      C squares = 0;
#pragma unroll
      for (int u = 0; u < U; ++u) {
        const C deviation = u < count ? items[u].at[i] - centre : C(0);
        error += deviation;
        squares += deviation * deviation;
      }
      const double off = static_cast<double>(error * share);
      const double delta = static_cast<double>(centre) + off - states[i].mean;
      states[i].mean += delta * weight;
      states[i].m2 += static_cast<double>(squares) - count * off * off + delta * delta * before * weight;
      states[i].count = both;
    }
  }
  __device__ void finish(std::int64_t, std::int64_t column, const State& all) const {
    mean[column] = static_cast<C>(all.mean);
    // Not fmax: it would turn a variance of NaN into 0.
    var[column] = static_cast<C>((all.m2 < 0 ? 0.0 : all.m2) / all.count);
  }
};

template <class T>
struct Normalise {
  using C = Compute<T>;
  template <int N>
  static constexpr int kBatch = N == 8 ? 2 : 4;
  template <int N>
  struct Item {
    Numbers<T, N> x, residual;
  };
  template <int N>
  struct Channel {
    Numbers<C, N> centre, scale, shift;
  };
  const T* x;
  const T* residual;  // null: no residual
  const C* mean;
  const C* inv_std;
  const C* gamma;
  const C* beta;
  std::int64_t columns;
  bool relu;
  T* y;

  template <int N>
  __device__ Channel<N> channel(std::int64_t, std::int64_t column) const {
    using Values = Numbers<C, N>;
    Channel<N> channel{Values::load(mean + column), Values::load(gamma + column), Values::load(beta + column)};
    const auto inverse = Values::load(inv_std + column);
    for (int i = 0; i < N; ++i) channel.scale.at[i] *= inverse.at[i];
    return channel;
  }
  template <int N>
  __device__ Item<N> load(const Channel<N>&, std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * columns + column;
    Item<N> item{};
    item.x = Numbers<T, N>::load(x + at);
    if (residual != nullptr) item.residual = Numbers<T, N>::load(residual + at);
    return item;
  }
  template <int N>
  __device__ void store(const Channel<N>& channel, const Item<N>& item, std::int64_t row, std::int64_t column) const {
    Numbers<T, N> out;
    for (int i = 0; i < N; ++i) {
      C value = fma(item.x.at[i] - channel.centre.at[i], channel.scale.at[i], channel.shift.at[i]);
      if (residual != nullptr) value += item.residual.at[i];
      out.at[i] = relu && value <= 0 ? C(0) : value;
    }
    out.store(y + row * columns + column);
  }
};

struct Blend {
  double momentum;
  template <class T>
  __device__ void operator()(T& running, double batch) const {
    running = static_cast<T>((1.0 - momentum) * static_cast<double>(running) + momentum * batch);
  }
};

template <class T>
__global__ void batch_norm_update_kernel(const T* mean, const T* var, T* running_mean, T* running_var, std::int64_t count,
                                         Blend blend, double unbiased) {
  for (std::int64_t c = first_item(); c < count; c += item_stride()) {
    blend(running_mean[c], static_cast<double>(mean[c]));
    blend(running_var[c], static_cast<double>(var[c]) * unbiased);
  }
}

template <class T>
__global__ void batch_norm_inv_std_kernel(const T* var, T* inv_std, std::int64_t count, double eps) {
  for (std::int64_t c = first_item(); c < count; c += item_stride()) {
    inv_std[c] = static_cast<T>(1.0 / sqrt(static_cast<double>(var[c]) + eps));
  }
}

}  // namespace

void batch_norm_statistics(const Tensor& x, const Tensor& mean, const Tensor& var) {
  dispatch_numbers(x.dtype(), "batch_norm", [&]<class T>() {
    using C = Compute<T>;
    const BatchStatistics<T> op{x.data<T>(), x.dim(1), mean.data<C>(), var.data<C>()};
    reduce_columns<T>("batch_norm_statistics", x.device(), 1, x.dim(0), x.dim(1), all_aligned(x), op);
  });
}

void batch_norm_forward(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma, const Tensor& beta,
                        const Tensor& residual, bool relu, const Tensor& y) {
  dispatch_numbers(x.dtype(), "batch_norm", [&]<class T>() {
    using C = Compute<T>;
    const Normalise<T> op{.x = x.data<T>(),
                          .residual = residual.defined() ? residual.data<T>() : nullptr,
                          .mean = mean.data<C>(),
                          .inv_std = inv_std.data<C>(),
                          .gamma = gamma.data<C>(),
                          .beta = beta.data<C>(),
                          .columns = x.dim(1),
                          .relu = relu,
                          .y = y.data<T>()};
    const bool aligned = all_aligned(x, mean, inv_std, gamma, beta, residual, y);
    map_columns<T>("batch_norm", x.device(), x.dim(0), x.dim(1), aligned, op);
  });
}

void batch_norm_update(const Tensor& mean, const Tensor& var, const Tensor& running_mean, const Tensor& running_var,
                       std::int64_t rows, double momentum) {
  const double unbiased = rows > 1 ? static_cast<double>(rows) / static_cast<double>(rows - 1) : 1.0;
  const std::int64_t count = mean.dim(0);
  dispatch_real(mean.dtype(), "batch_norm", [&]<class T>() {
    launch("batch_norm_update", mean.device(), grid_for(count, mean.device()), batch_norm_update_kernel<T>, mean.data<T>(),
           var.data<T>(), running_mean.data<T>(), running_var.data<T>(), count, Blend{momentum}, unbiased);
  });
}

void batch_norm_inv_std(const Tensor& var, const Tensor& inv_std, double eps) {
  const std::int64_t count = var.dim(0);
  dispatch_real(var.dtype(), "batch_norm", [&]<class T>() {
    launch("batch_norm_inv_std", var.device(), grid_for(count, var.device()), batch_norm_inv_std_kernel<T>, var.data<T>(),
           inv_std.data<T>(), count, eps);
  });
}

}  // namespace tessera::cuda
