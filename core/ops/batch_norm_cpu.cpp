#include <array>
#include <cmath>
#include <vector>

#include "core/cpu/channel_walk.h"
#include "core/ops/batch_norm.h"

namespace tessera::cpu {
namespace {

// Partial results of each part, [parts][channels]. They are joined in the order of the parts.
class Partials {
 public:
  Partials(int parts, std::int64_t channels)
      : channels_(static_cast<std::size_t>(channels)), values_(static_cast<std::size_t>(parts) * channels_) {}
  double* part(int index) { return values_.data() + static_cast<std::size_t>(index) * channels_; }
  double total(std::int64_t channel) const {
    double sum = 0;
    for (std::size_t at = static_cast<std::size_t>(channel); at < values_.size(); at += channels_) sum += values_[at];
    return sum;
  }

 private:
  std::size_t channels_;
  std::vector<double> values_;
};

// Calls body.operator()<a, b>() with a and b as compile-time constants, so that no branch stays in the loops.
template <class Body>
void with_constants(bool a, bool b, Body&& body) {
  if (a) return b ? body.template operator()<true, true>() : body.template operator()<true, false>();
  return b ? body.template operator()<false, true>() : body.template operator()<false, false>();
}

template <class T>
T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

// Always inlined: a call in the loops would cost more than the arithmetic.
template <class Block>
[[gnu::always_inline]] inline Block affine(const Block& x, const Block& centre, const Block& scale, const Block& shift) {
  return (x - centre) * scale + shift;
}

template <class T, bool kResidual, bool kRelu>
void normalise(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma, const Tensor& beta,
               const Tensor& residual, const Tensor& y) {
  using C = Compute<T>;
  const std::int64_t channels = x.dim(1);
  const C *const means = mean.data<C>(), *const inverses = inv_std.data<C>();
  const C *const factors = gamma.data<C>(), *const shifts = beta.data<C>();
  const T *const from = x.data<T>(), *const added = data_or_null<T>(residual);
  T* const to = y.data<T>();
  map_channel_blocks<C>(
      x.dim(0), channels, [=]<class Block>(std::int64_t first, std::int64_t last, std::int64_t c) __attribute__((always_inline)) {
        const Block centre = Block::load(means + c), scale = Block::load(factors + c) * Block::load(inverses + c);
        const Block shift = Block::load(shifts + c);
        PieceBehind<Block> behind(first, last, channels, c);
        for (std::int64_t at = first * channels + c; at < last * channels; at += channels) {
          if constexpr (kResidual)
            behind.ask(from, added);
          else
            behind.ask(from);
          Block value = affine(Block::load(from + at), centre, scale, shift);
          if constexpr (kResidual) value = value + Block::load(added + at);
          if constexpr (kRelu) value = positive_part(value);
          value.store(to + at);
        }
      });
}

// Source of the ReLU's mask: nothing (there is no ReLU), its output y, or the input x of the batch norm.
enum class Cut { none, y, x };

// The gradient after the mask of the ReLU, walked one block of channels at a time.
template <class T, Cut kCut>
struct MaskedGradient {
  const T* x;
  const T* g;
  const T* y;  // read with Cut::y only
  T* masked;  // null: not kept
  const Compute<T>*mean, *inv_std, *gamma, *beta;  // beta is read with Cut::x only

  // Values of channels [c, c + Block::kChannels) that are the same for all rows.
  template <class Block>
  struct Channels {
    Block centre, scale, shift;
  };
  template <class Block>
  [[gnu::always_inline]] Channels<Block> channels(std::int64_t c) const {
    Channels<Block> block{Block::load(mean + c), {}, {}};
    if constexpr (kCut == Cut::x) {
      block.scale = Block::load(gamma + c) * Block::load(inv_std + c);
      block.shift = Block::load(beta + c);
    }
    return block;
  }
  template <class Block>
  [[gnu::always_inline]] void ask(PieceBehind<Block>& behind) const {
    if constexpr (kCut == Cut::y)
      behind.ask(x, g, y);
    else
      behind.ask(x, g);
  }
  template <class Block>
  [[gnu::always_inline]] Block at(std::int64_t index, const Block& x_here, const Channels<Block>& block) const {
    const Block all = Block::load(g + index);
    if constexpr (kCut == Cut::y) return relu_gradient(Block::load(y + index), all);
    if constexpr (kCut == Cut::x) return relu_gradient(affine(x_here, block.centre, block.scale, block.shift), all);
    return all;
  }
};

// Adds the sums of g and of g * (x - mean) over rows [begin, end) to the part's doubles.
template <class T, class Block, Cut kCut, bool kKeep>
void add_piece(const MaskedGradient<T, kCut>& gradient, std::int64_t begin, std::int64_t end, std::int64_t channels,
               std::int64_t c, double* sum_g, double* sum_gx) {
  const auto block = gradient.template channels<Block>(c);
  Block plain = Block::filled(0);
  Block weighted = Block::filled(0);
  PieceBehind<Block> behind(begin, end, channels, c);
  for (std::int64_t at = begin * channels + c; at < end * channels; at += channels) {
    gradient.ask(behind);
    const Block x = Block::load(gradient.x + at);
    const Block g = gradient.at(at, x, block);
    if constexpr (kKeep) g.store(gradient.masked + at);
    plain = plain + g;
    weighted = weighted + g * (x - block.centre);
  }
  std::array<Compute<T>, Block::kChannels> p{}, w{};
  plain.store(p.data());
  weighted.store(w.data());
  for (std::size_t i = 0; i < p.size(); ++i) {
    sum_g[c + static_cast<std::int64_t>(i)] += static_cast<double>(p[i]);
    sum_gx[c + static_cast<std::int64_t>(i)] += static_cast<double>(w[i]);
  }
}

template <bool kKeep, class T, Cut kCut>
void backward_parameters(std::int64_t rows, std::int64_t channels, const MaskedGradient<T, kCut>& gradient,
                         const Tensor& grad_gamma, const Tensor& grad_beta) {
  using C = Compute<T>;
  const int parts = row_parts(rows, channels);
  Partials sum_g(parts, channels);
  Partials sum_gx(parts, channels);
  parallel_rows(rows, channels, [&](std::int64_t begin, std::int64_t end, int part) {
    for_each_piece(begin, end, channels, [&](std::int64_t first, std::int64_t last) {
      for_each_channel_block<C>(channels, [&]<class Block>(std::int64_t c) {
        add_piece<T, Block, kCut, kKeep>(gradient, first, last, channels, c, sum_g.part(part), sum_gx.part(part));
      });
    });
  });
  for (std::int64_t c = 0; c < channels; ++c) {
    grad_beta.data<C>()[c] = static_cast<C>(sum_g.total(c));
    grad_gamma.data<C>()[c] = static_cast<C>(sum_gx.total(c) * static_cast<double>(gradient.inv_std[c]));
  }
}

// grad_x = scale * g - slope * (x - mean) - offset, one multiply-add per operand.
template <class T>
struct InputGradient {
  std::vector<T> scale, slope, offset;
};

template <class T>
InputGradient<T> input_gradient(const Tensor& inv_std, const Tensor& gamma, const Tensor& grad_gamma, const Tensor& grad_beta,
                                std::int64_t rows, bool training) {
  InputGradient<T> terms;
  for (std::int64_t c = 0; c < gamma.dim(0); ++c) {
    const double scale = static_cast<double>(gamma.data<T>()[c]) * static_cast<double>(inv_std.data<T>()[c]);
    const double share = training ? scale / static_cast<double>(rows) : 0.0;
    const double inverse = static_cast<double>(inv_std.data<T>()[c]);
    terms.scale.push_back(static_cast<T>(scale));
    terms.slope.push_back(training ? static_cast<T>(share * inverse * static_cast<double>(grad_gamma.data<T>()[c])) : T(0));
    terms.offset.push_back(training ? static_cast<T>(share * static_cast<double>(grad_beta.data<T>()[c])) : T(0));
  }
  return terms;
}

template <class T, Cut kCut>
void backward_input(const MaskedGradient<T, kCut>& gradient, const InputGradient<Compute<T>>& terms, const Tensor& grad_x) {
  using C = Compute<T>;
  const std::int64_t channels = grad_x.dim(1);
  const C *const scales = terms.scale.data(), *const slopes = terms.slope.data(), *const offsets = terms.offset.data();
  T* const to = grad_x.data<T>();
  map_channel_blocks<C>(
      grad_x.dim(0),
      channels, [=]<class Block>(std::int64_t first, std::int64_t last, std::int64_t c) __attribute__((always_inline)) {
        const auto block = gradient.template channels<Block>(c);
        const Block scale = Block::load(scales + c), slope = Block::load(slopes + c), offset = Block::load(offsets + c);
        PieceBehind<Block> behind(first, last, channels, c);
        for (std::int64_t at = first * channels + c; at < last * channels; at += channels) {
          gradient.ask(behind);
          const Block x = Block::load(gradient.x + at);
          const Block g = gradient.at(at, x, block);
          (g * scale - (x - block.centre) * slope - offset).store(to + at);
        }
      });
}

struct BackwardOperands {
  const Tensor &x, &grad_y, &mean, &inv_std, &gamma;
};

// Calls body with the MaskedGradient. Its element type and its Cut are compile-time constants.
template <class Body>
void with_gradient(const BackwardOperands& o, const BatchNormRelu& relu, const Tensor& masked, Body&& body) {
  dispatch_floating(o.x.dtype(), "batch_norm", [&]<class T>() {
    using C = Compute<T>;
    const auto call = [&]<Cut kCut>() {
      body(MaskedGradient<T, kCut>{o.x.data<T>(), o.grad_y.data<T>(), data_or_null<T>(relu.y), data_or_null<T>(masked),
                                   o.mean.data<C>(), o.inv_std.data<C>(), o.gamma.data<C>(), data_or_null<C>(relu.beta)});
    };
    if (relu.y.defined()) return call.template operator()<Cut::y>();
    if (relu.beta.defined()) return call.template operator()<Cut::x>();
    call.template operator()<Cut::none>();
  });
}

}  // namespace

void batch_norm_forward(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma, const Tensor& beta,
                        const Tensor& residual, bool relu, const Tensor& y) {
  dispatch_floating(x.dtype(), "batch_norm", [&]<class T>() {
    with_constants(residual.defined(), relu, [&]<bool kResidual, bool kRelu>() {
      normalise<T, kResidual, kRelu>(x, mean, inv_std, gamma, beta, residual, y);
    });
  });
}

void batch_norm_update(const Tensor& mean, const Tensor& var, const Tensor& running_mean, const Tensor& running_var,
                       std::int64_t rows, double momentum) {
  const double unbiased = rows > 1 ? static_cast<double>(rows) / static_cast<double>(rows - 1) : 1.0;
  dispatch_real(mean.dtype(), "batch_norm", [&]<class T>() {
    const auto blend = [&](T& running, double batch) {
      running = static_cast<T>((1.0 - momentum) * static_cast<double>(running) + momentum * batch);
    };
    for (std::int64_t c = 0; c < mean.dim(0); ++c) {
      blend(running_mean.data<T>()[c], static_cast<double>(mean.data<T>()[c]));
      blend(running_var.data<T>()[c], static_cast<double>(var.data<T>()[c]) * unbiased);
    }
  });
}

void batch_norm_inv_std(const Tensor& var, const Tensor& inv_std, double eps) {
  dispatch_real(var.dtype(), "batch_norm", [&]<class T>() {
    for (std::int64_t c = 0; c < var.dim(0); ++c) {
      inv_std.data<T>()[c] = static_cast<T>(1.0 / std::sqrt(static_cast<double>(var.data<T>()[c]) + eps));
    }
  });
}

void batch_norm_backward_parameters(const Tensor& x, const Tensor& grad_y, const BatchNormRelu& relu, const Tensor& mean,
                                    const Tensor& inv_std, const Tensor& gamma, const Tensor& grad_gamma, const Tensor& grad_beta,
                                    const Tensor& grad_masked) {
  with_gradient({x, grad_y, mean, inv_std, gamma}, relu, grad_masked, [&]<class T, Cut kCut>(const MaskedGradient<T, kCut>& g) {
    if (g.masked != nullptr) return backward_parameters<true>(x.dim(0), x.dim(1), g, grad_gamma, grad_beta);
    backward_parameters<false>(x.dim(0), x.dim(1), g, grad_gamma, grad_beta);
  });
}

void batch_norm_backward_input(const Tensor& x, const Tensor& grad_y, const BatchNormRelu& relu, const Tensor& mean,
                               const Tensor& inv_std, const Tensor& gamma, const Tensor& grad_gamma, const Tensor& grad_beta,
                               bool training, const Tensor& grad_x) {
  const std::int64_t rows = std::max<std::int64_t>(x.dim(0), 1);
  with_gradient({x, grad_y, mean, inv_std, gamma}, relu, {}, [&]<class T, Cut kCut>(const MaskedGradient<T, kCut>& gradient) {
    backward_input(gradient, input_gradient<Compute<T>>(inv_std, gamma, grad_gamma, grad_beta, rows, training), grad_x);
  });
}

}  // namespace tessera::cpu
