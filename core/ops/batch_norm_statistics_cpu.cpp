#include <algorithm>
#include <array>
#include <vector>

#include "core/cpu/channel_walk.h"
#include "core/ops/batch_norm.h"

namespace tessera::cpu {
namespace {

// Running means and sums of squared deviations of all channels, which have the same count.
class Moments {
 public:
  explicit Moments(std::size_t channels) : means_(channels), squares_(channels) {}

  // How a piece of rows is joined: Chan, Golub & LeVeque 1983, "Algorithms for computing the sample variance", eq. 2.1.
  // The divisions are the same for all channels.
  struct Weights {
    double share, product;  // rows / total, and the product of both counts / total
  };
  Weights weights_for(double rows) const {
    const double total = count_ + rows;
    return {rows / total, count_ * rows / total};
  }
  void join(std::size_t channel, double mean, double squares, const Weights& weights) {
    const double delta = mean - means_[channel];
    means_[channel] += delta * weights.share;
    squares_[channel] += squares + delta * delta * weights.product;
  }
  void add_rows(double rows) { count_ += rows; }  // after all channels of a piece

  void join(const Moments& other) {
    if (other.count_ == 0) return;
    const Weights joined = weights_for(other.count_);
    for (std::size_t c = 0; c < means_.size(); ++c) join(c, other.means_[c], other.squares_[c], joined);
    add_rows(other.count_);
  }
  double mean(std::size_t channel) const { return means_[channel]; }
  double variance(std::size_t channel) const { return std::max(squares_[channel], 0.0) / count_; }

 private:
  double count_ = 0;
  std::vector<double> means_, squares_;
};

// Joins rows [begin, end) to the moments of a block of channels. The piece is in cache and is walked twice: the second walk also
// measures how far the rounded mean of the first one is off.
template <class T, class Block>
void join_piece(const T* x, std::int64_t begin, std::int64_t end, std::int64_t channels, std::int64_t c,
                const Moments::Weights& weights, Moments& moments) {
  Block sum = Block::filled(0);
  PieceBehind<Block> behind(begin, end, channels, c);
  for (std::int64_t row = begin; row < end; ++row) {
    behind.ask(x);
    sum = sum + Block::load(x + row * channels + c);
  }
  const Block mean = sum * Block::filled(1 / static_cast<Compute<T>>(end - begin));
  Block error = Block::filled(0);
  Block squares = Block::filled(0);
  for (std::int64_t row = begin; row < end; ++row) {
    const Block deviation = Block::load(x + row * channels + c) - mean;
    error = error + deviation;
    squares = squares + deviation * deviation;
  }
  std::array<Compute<T>, Block::kChannels> m{}, e{}, s{};
  mean.store(m.data());
  error.store(e.data());
  squares.store(s.data());
  const double n = static_cast<double>(end - begin), inverse = 1 / n;
  for (std::size_t i = 0; i < m.size(); ++i) {
    const double off = static_cast<double>(e[i]) * inverse;
    moments.join(static_cast<std::size_t>(c) + i, static_cast<double>(m[i]) + off, static_cast<double>(s[i]) - n * off * off,
                 weights);
  }
}

template <class T>
void statistics(const Tensor& x, const Tensor& mean, const Tensor& var) {
  const std::int64_t rows = x.dim(0);
  const std::int64_t channels = x.dim(1);
  const auto width = static_cast<std::size_t>(channels);
  std::vector<Moments> parts(static_cast<std::size_t>(row_parts(rows, channels)), Moments(width));
  parallel_rows(rows, channels, [&](std::int64_t begin, std::int64_t end, int part) {
    Moments& own = parts[static_cast<std::size_t>(part)];
    for_each_piece(begin, end, channels, [&](std::int64_t first, std::int64_t last) {
      const Moments::Weights weights = own.weights_for(static_cast<double>(last - first));
      for_each_channel_block<Compute<T>>(channels, [&]<class Block>(std::int64_t c) {
        join_piece<T, Block>(x.data<T>(), first, last, channels, c, weights, own);
      });
      own.add_rows(static_cast<double>(last - first));
    });
  });
  Moments all(width);
  for (const Moments& part : parts) all.join(part);
  for (std::size_t c = 0; c < width; ++c) {
    mean.data<Compute<T>>()[c] = static_cast<Compute<T>>(all.mean(c));
    var.data<Compute<T>>()[c] = static_cast<Compute<T>>(all.variance(c));
  }
}

}  // namespace

void batch_norm_statistics(const Tensor& x, const Tensor& mean, const Tensor& var) {
  dispatch_floating(x.dtype(), "batch_norm", [&]<class T>() { statistics<T>(x, mean, var); });
}

}  // namespace tessera::cpu
