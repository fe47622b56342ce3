#include <numbers>

#include "core/cuda/kernel/launch.cuh"
#include "core/rng_backend.h"

namespace tessera::cuda {
namespace {

// Uses fma() where the CPU's compiler fuses a multiplication and an addition, so that uniform numbers have the same bits.
struct Uniform {
  double low, range;
  __device__ void operator()(const std::array<std::uint32_t, 4>& words, double (&values)[4]) const {
    for (std::size_t i = 0; i < 4; ++i) values[i] = fma(range, static_cast<double>(to_unit_float(words[i])), low);
  }
};

struct Normal {
  double mean, stddev;
  __device__ void operator()(const std::array<std::uint32_t, 4>& words, double (&values)[4]) const {
    for (std::size_t i = 0; i < 4; i += 2) {  // Box-Muller; 1 - u is in (0, 1]
      const double radius = sqrt(-2.0 * log(1.0 - static_cast<double>(to_unit_float(words[i]))));
      double sine = 0;
      double cosine = 0;
      sincos(2.0 * std::numbers::pi * static_cast<double>(to_unit_float(words[i + 1])), &sine, &cosine);
      values[i] = fma(stddev * radius, cosine, mean);
      values[i + 1] = fma(stddev * radius, sine, mean);
    }
  }
};

template <class T, class Draw>
__global__ void fill_random_kernel(T* data, std::int64_t count, RngStream stream, std::uint64_t step, Draw draw) {
  for (std::int64_t block = first_item(); block * 4 < count; block += item_stride()) {
    double values[4];
    draw(random_words(stream, step, static_cast<std::uint64_t>(block)), values);
    for (int i = 0; i < 4; ++i) {
      if (block * 4 + i < count) data[block * 4 + i] = static_cast<T>(values[i]);
    }
  }
}

template <class Draw>
void fill_random(const char* name, const Tensor& target, RngStream stream, std::uint64_t step, const Draw& draw) {
  const std::int64_t count = target.numel();
  dispatch_real(target.dtype(), name, [&]<class T>() {
    launch(name, target.device(), grid_for((count + 3) / 4, target.device()), fill_random_kernel<T, Draw>, target.data<T>(),
           count, stream, step, draw);
  });
}

}  // namespace

void draw_uniform(const Tensor& target, RngStream stream, double low, double high, std::uint64_t step) {
  fill_random("fill_uniform", target, stream, step, Uniform{low, high - low});
}

void draw_normal(const Tensor& target, RngStream stream, double mean, double stddev, std::uint64_t step) {
  fill_random("fill_normal", target, stream, step, Normal{mean, stddev});
}

}  // namespace tessera::cuda
