#include <array>
#include <vector>

#include "core/cpu/channel_walk.h"
#include "core/ops/batch_norm.h"

namespace tessera::cpu {
namespace {

// Running count, mean and sum of squared deviations of one channel.
struct Moments {
  double count = 0;
  double mean = 0;
  double m2 = 0;

  // Chan, Golub & LeVeque 1983, "Algorithms for computing the sample variance", eq. 2.1.
  void join(const Moments& other) {
    const double total = count + other.count;
    if (total == 0) return;
    const double delta = other.mean - mean;
    mean += delta * other.count / total;
    m2 += other.m2 + delta * delta * count * other.count / total;
    count = total;
  }
};

// Adds the moments of rows [begin, end) to moments[c...]. The piece is in cache and is walked twice: the second walk also
// measures how far the rounded mean of the first one is off.
template <class T, class Block>
void join_piece(const T* x, std::int64_t begin, std::int64_t end, std::int64_t channels, std::int64_t c, Moments* moments) {
  Block sum = Block::filled(0);
  PieceBehind<Block> behind(begin, end, channels, c);
  for (std::int64_t row = begin; row < end; ++row) {
    behind.ask(x);
    sum = sum + Block::load(x + row * channels + c);
  }
  const auto count = static_cast<Compute<T>>(end - begin);
  const Block mean = sum * Block::filled(1 / count);
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
  for (std::size_t i = 0; i < m.size(); ++i) {
    const double n = static_cast<double>(count);
    const double off = static_cast<double>(e[i]) / n;
    moments[c + static_cast<std::int64_t>(i)].join(
        {n, static_cast<double>(m[i]) + off, static_cast<double>(s[i]) - n * off * off});
  }
}

template <class T>
void statistics(const Tensor& x, const Tensor& mean, const Tensor& var) {
  const std::int64_t rows = x.dim(0);
  const std::int64_t channels = x.dim(1);
  const auto width = static_cast<std::size_t>(channels);
  std::vector<Moments> moments(static_cast<std::size_t>(row_parts(rows, channels)) * width);
  parallel_rows(rows, channels, [&](std::int64_t begin, std::int64_t end, int part) {
    Moments* const own = moments.data() + static_cast<std::size_t>(part) * width;
    for_each_piece(begin, end, channels, [&](std::int64_t first, std::int64_t last) {
      for_each_channel_block<Compute<T>>(
          channels, [&]<class Block>(std::int64_t c) { join_piece<T, Block>(x.data<T>(), first, last, channels, c, own); });
    });
  });
  for (std::size_t c = 0; c < width; ++c) {
    Moments all;
    for (std::size_t at = c; at < moments.size(); at += width) all.join(moments[at]);
    mean.data<Compute<T>>()[c] = static_cast<Compute<T>>(all.mean);
    var.data<Compute<T>>()[c] = static_cast<Compute<T>>(std::max(all.m2, 0.0) / all.count);
  }
}

}  // namespace

void batch_norm_statistics(const Tensor& x, const Tensor& mean, const Tensor& var) {
  dispatch_floating(x.dtype(), "batch_norm", [&]<class T>() { statistics<T>(x, mean, var); });
}

}  // namespace tessera::cpu
