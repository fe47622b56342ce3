#include <algorithm>

#include "core/cuda/kernel/column_map.cuh"
#include "core/cuda/kernel/column_reduce.cuh"
#include "core/cuda/kernel/compute_types.cuh"
#include "core/ops/batch_norm.h"

namespace tessera::cuda {
namespace {

// Source of the ReLU's mask: nothing (there is no ReLU), its output y, or the input x of the batch norm.
enum class Cut { none, y, x };

// The gradient after the mask of the ReLU. Where y is NaN, the gradient passes.
template <class T, Cut kCut>
struct MaskedGradient {
  using C = Compute<T>;
  const T* x;
  const T* g;
  const T* y;  // read with Cut::y only
  const C* mean;
  const C* inv_std;
  const C* gamma;
  const C* beta;  // read with Cut::x only
  std::int64_t columns;

  template <int N>
  struct Item {
    Numbers<T, N> x, g, y;
  };
  template <int N>
  struct Channel {
    Numbers<C, N> centre, scale, shift;  // scale and shift are set with Cut::x only
  };

  template <int N>
  __device__ Channel<N> channel(std::int64_t column) const {
    using Values = Numbers<C, N>;
    Channel<N> channel;
    channel.centre = Values::load(mean + column);
    if constexpr (kCut == Cut::x) {
      channel.scale = Values::load(gamma + column);
      channel.shift = Values::load(beta + column);
      const auto inverse = Values::load(inv_std + column);
      for (int i = 0; i < N; ++i) channel.scale.at[i] *= inverse.at[i];
    }
    return channel;
  }
  template <int N>
  __device__ Item<N> load(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * columns + column;
    Item<N> item;
    item.x = Numbers<T, N>::load(x + at);
    item.g = Numbers<T, N>::load(g + at);
    if constexpr (kCut == Cut::y) item.y = Numbers<T, N>::load(y + at);
    return item;
  }
  // With Cut::x, rounds as Normalise does, so that both see the same sign.
  template <int N>
  __device__ C at(const Channel<N>& channel, const Item<N>& item, int i) const {
    const C all = item.g.at[i];
    if constexpr (kCut == Cut::y) return item.y.at[i] <= 0 ? C(0) : all;
    if constexpr (kCut == Cut::x) {
      return fma(item.x.at[i] - channel.centre.at[i], channel.scale.at[i], channel.shift.at[i]) <= 0 ? C(0) : all;
    }
    return all;
  }
};

// Sums of g and of g * (x - mean).
template <class T, Cut kCut>
struct ParameterGradients {
  using C = Compute<T>;
  using State = Sums<2>;
  using Gradient = MaskedGradient<T, kCut>;
  template <int N>
  using Item = typename Gradient::template Item<N>;
  template <int N>
  using Channel = typename Gradient::template Channel<N>;
  template <int N>
  static constexpr int kBatch = N == 8 ? 2 : 4;
  Gradient gradient;
  T* masked;  // null: not kept
  C* grad_gamma;
  C* grad_beta;

  template <int N>
  __device__ Channel<N> channel(std::int64_t, std::int64_t column) const { return gradient.template channel<N>(column); }
  template <int N>
  __device__ Item<N> load(const Channel<N>&, std::int64_t row, std::int64_t column) const {
    return gradient.template load<N>(row, column);
  }
  template <int N, int U>
  __device__ void add(const Channel<N>& channel, const Item<N> (&items)[U], int count, std::int64_t row, const ColumnPlace& place,
                      State (&states)[N]) const {
    Numbers<T, N> kept[U];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      C plain = 0;
      C weighted = 0;
#pragma unroll
      for (int u = 0; u < U; ++u) {
        const C here = u < count ? gradient.at(channel, items[u], i) : C(0);
        kept[u].at[i] = here;
        plain += here;
        weighted += u < count ? here * (items[u].x.at[i] - channel.centre.at[i]) : C(0);
      }
      states[i].join({{static_cast<double>(plain), static_cast<double>(weighted)}});
    }
    if (masked == nullptr) return;
#pragma unroll
    for (int u = 0; u < U; ++u) {
      if (u < count) kept[u].store(masked + (row + u * place.step) * gradient.columns + place.column);
    }
  }
  __device__ void finish(std::int64_t, std::int64_t column, const State& sums) const {
    grad_beta[column] = static_cast<C>(sums.at[0]);
    grad_gamma[column] = static_cast<C>(sums.at[1] * static_cast<double>(gradient.inv_std[column]));
  }
};

// grad_x = scale * g - slope * (x - mean) - offset.
template <class T, Cut kCut>
struct InputGradient {
  using C = Compute<T>;
  using Gradient = MaskedGradient<T, kCut>;
  template <int N>
  using Item = typename Gradient::template Item<N>;
  template <int N>
  static constexpr int kBatch = N == 8 ? 2 : 4;
  template <int N>
  struct Channel {
    typename Gradient::template Channel<N> masked;
    Numbers<C, N> scale, slope, offset;
  };
  Gradient gradient;
  const C* grad_gamma;  // null in inference: the statistics do not depend on x
  const C* grad_beta;
  double rows;
  T* grad_x;

  template <int N>
  __device__ Channel<N> channel(std::int64_t, std::int64_t column) const {
    Channel<N> channel;
    channel.masked = gradient.template channel<N>(column);
    for (int i = 0; i < N; ++i) {
      const double inverse = static_cast<double>(gradient.inv_std[column + i]);
      const double scale = static_cast<double>(gradient.gamma[column + i]) * inverse;
      channel.scale.at[i] = static_cast<C>(scale);
      channel.slope.at[i] = 0;
      channel.offset.at[i] = 0;
      if (grad_gamma == nullptr) continue;
      channel.slope.at[i] = static_cast<C>(scale / rows * inverse * static_cast<double>(grad_gamma[column + i]));
      channel.offset.at[i] = static_cast<C>(scale / rows * static_cast<double>(grad_beta[column + i]));
    }
    return channel;
  }
  template <int N>
  __device__ Item<N> load(const Channel<N>&, std::int64_t row, std::int64_t column) const {
    return gradient.template load<N>(row, column);
  }
  template <int N>
  __device__ void store(const Channel<N>& channel, const Item<N>& item, std::int64_t row, std::int64_t column) const {
    Numbers<T, N> out;
    for (int i = 0; i < N; ++i) {
      const C g = gradient.at(channel.masked, item, i);
      const C deviation = item.x.at[i] - channel.masked.centre.at[i];
      out.at[i] = g * channel.scale.at[i] - deviation * channel.slope.at[i] - channel.offset.at[i];
    }
    out.store(grad_x + row * gradient.columns + column);
  }
};

template <class T>
T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

struct Operands {
  const Tensor &x, &grad_y, &mean, &inv_std, &gamma;
};

// Calls body with the MaskedGradient. Its element type and its Cut are compile-time constants.
template <class Body>
void with_gradient(const Operands& o, const BatchNormRelu& relu, Body&& body) {
  dispatch_numbers(o.x.dtype(), "batch_norm", [&]<class T>() {
    using C = Compute<T>;
    const auto call = [&]<Cut kCut>() {
      body(MaskedGradient<T, kCut>{.x = o.x.data<T>(),
                                   .g = o.grad_y.data<T>(),
                                   .y = data_or_null<T>(relu.y),
                                   .mean = o.mean.data<C>(),
                                   .inv_std = o.inv_std.data<C>(),
                                   .gamma = o.gamma.data<C>(),
                                   .beta = data_or_null<C>(relu.beta),
                                   .columns = o.x.dim(1)});
    };
    if (relu.y.defined()) return call.template operator()<Cut::y>();
    if (relu.beta.defined()) return call.template operator()<Cut::x>();
    call.template operator()<Cut::none>();
  });
}

bool aligned(const Operands& o, const BatchNormRelu& relu, const Tensor& target) {
  return all_aligned(o.x, o.grad_y, o.mean, o.inv_std, o.gamma, relu.y, relu.beta, target);
}

}  // namespace

void batch_norm_backward_parameters(const Tensor& x, const Tensor& grad_y, const BatchNormRelu& relu, const Tensor& mean,
                                    const Tensor& inv_std, const Tensor& gamma, const Tensor& grad_gamma, const Tensor& grad_beta,
                                    const Tensor& grad_masked) {
  const Operands o{x, grad_y, mean, inv_std, gamma};
  with_gradient(o, relu, [&]<class T, Cut kCut>(const MaskedGradient<T, kCut>& gradient) {
    using C = Compute<T>;
    const ParameterGradients<T, kCut> op{gradient, data_or_null<T>(grad_masked), grad_gamma.data<C>(), grad_beta.data<C>()};
    reduce_columns<T>("batch_norm_backward_parameters", x.device(), 1, x.dim(0), x.dim(1), aligned(o, relu, grad_masked), op);
  });
}

void batch_norm_backward_input(const Tensor& x, const Tensor& grad_y, const BatchNormRelu& relu, const Tensor& mean,
                               const Tensor& inv_std, const Tensor& gamma, const Tensor& grad_gamma, const Tensor& grad_beta,
                               bool training, const Tensor& grad_x) {
  const Operands o{x, grad_y, mean, inv_std, gamma};
  with_gradient(o, relu, [&]<class T, Cut kCut>(const MaskedGradient<T, kCut>& gradient) {
    using C = Compute<T>;
    const InputGradient<T, kCut> op{.gradient = gradient,
                                    .grad_gamma = training ? grad_gamma.data<C>() : nullptr,
                                    .grad_beta = training ? grad_beta.data<C>() : nullptr,
                                    .rows = static_cast<double>(std::max<std::int64_t>(x.dim(0), 1)),
                                    .grad_x = grad_x.data<T>()};
    map_columns<T>("batch_norm_backward_input", x.device(), x.dim(0), x.dim(1), aligned(o, relu, grad_x), op);
  });
}

}  // namespace tessera::cuda
