#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/cpu/parallel.h"
#include "core/rng_backend.h"

namespace tessera {
namespace {

template <class T, class Draw>
void fill_blocks(T* data, std::int64_t count, Draw&& draw) {
  cpu::parallel_for((count + 3) / 4, cpu::kGrain / 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::array<double, 4> values = draw(static_cast<std::uint64_t>(block));
      const std::int64_t length = std::min<std::int64_t>(4, count - block * 4);
      for (std::int64_t i = 0; i < length; ++i) data[block * 4 + i] = static_cast<T>(values[static_cast<std::size_t>(i)]);
    }
  });
}

template <class Draw>
void fill(const char* name, const Tensor& target, Draw&& draw) {
  dispatch_real(target.dtype(), name, [&]<class T>() { fill_blocks(target.data<T>(), target.numel(), draw); });
}

}  // namespace

namespace cpu {

void draw_uniform(const Tensor& target, RngStream stream, double low, double high, std::uint64_t step) {
  fill("fill_uniform", target, [=](std::uint64_t block) {
    const auto words = random_words(stream, step, block);
    std::array<double, 4> values{};
    for (std::size_t i = 0; i < 4; ++i) values[i] = low + (high - low) * static_cast<double>(to_unit_float(words[i]));
    return values;
  });
}

void draw_normal(const Tensor& target, RngStream stream, double mean, double stddev, std::uint64_t step) {
  fill("fill_normal", target, [=](std::uint64_t block) {
    const auto words = random_words(stream, step, block);
    std::array<double, 4> values{};
    for (std::size_t i = 0; i < 4; i += 2) {  // Box-Muller; 1 - u is in (0, 1]
      const double radius = std::sqrt(-2.0 * std::log(1.0 - static_cast<double>(to_unit_float(words[i]))));
      const double angle = 2.0 * std::numbers::pi * static_cast<double>(to_unit_float(words[i + 1]));
      values[i] = mean + stddev * radius * std::cos(angle);
      values[i + 1] = mean + stddev * radius * std::sin(angle);
    }
    return values;
  });
}

}  // namespace cpu

}  // namespace tessera
