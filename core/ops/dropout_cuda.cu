#include "core/cuda/kernel/map.cuh"
#include "core/ops/dropout.h"
#include "core/ops/dropout_math.h"

namespace tessera::cuda {
namespace {

struct DropoutBackward {
  double scale;
  template <class T>
  __device__ T operator()(T g, std::uint8_t kept) const { return kept != 0 ? static_cast<T>(scale) * g : T(0); }
};

struct DropoutRule {
  double scale;
  std::uint32_t threshold;
  RngStream stream;
};

template <class T>
__device__ void drop_block(const Pack<T, 4>& x, const DropoutRule& rule, std::uint64_t step, std::int64_t block, Pack<T, 4>& y,
                           Pack<std::uint8_t, 4>& mask) {
  const auto words = random_words(rule.stream, step, static_cast<std::uint64_t>(block));
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const bool keep = is_kept(words[static_cast<std::size_t>(i)], rule.threshold);
    const auto number = number_of(x.elements[i]);
    using Number = std::remove_const_t<decltype(number)>;
    mask.elements[i] = keep;
    y.elements[i] = element_of<T>(keep ? static_cast<Number>(rule.scale) * number : Number(0));
  }
}

// An item is a block of four elements and of four random words. `packs`: the addresses allow a block to move at once.
template <class T>
__global__ void dropout_forward_kernel(const T* x, std::int64_t count, DropoutRule rule, const StepStateData* state, T* y,
                                       std::uint8_t* mask, bool packs) {
  const std::uint64_t step = dropout_step(*state);
  for (std::int64_t block = first_item(); block * 4 < count; block += item_stride()) {
    const std::int64_t at = block * 4;
    const bool whole = packs && at + 4 <= count;
    Pack<T, 4> in{};
    Pack<T, 4> out;
    Pack<std::uint8_t, 4> kept;
    if constexpr (sizeof(T) <= 4) {
      if (whole) in = load_pack<4>(x + at);
    }
    if (!whole || sizeof(T) > 4) {
      for (int i = 0; i < 4; ++i) {
        if (at + i < count) in.elements[i] = x[at + i];
      }
    }
    drop_block(in, rule, step, block, out, kept);
    if constexpr (sizeof(T) <= 4) {
      if (whole) {
        store_pack(y + at, out);
        store_pack(mask + at, kept);
        continue;
      }
    }
    for (int i = 0; i < 4; ++i) {
      if (at + i < count) {
        y[at + i] = out.elements[i];
        mask[at + i] = kept.elements[i];
      }
    }
  }
}

}  // namespace

void dropout_forward(const Tensor& x, double p, RngStream stream, const Tensor& step_state, const Tensor& y, const Tensor& mask) {
  const DropoutRule rule{1.0 / (1.0 - p), dropout_threshold(p), stream};
  const std::int64_t count = x.numel();
  dispatch_numbers(x.dtype(), "dropout", [&]<class T>() {
    const bool packs = is_aligned(x.raw(), 4 * sizeof(T)) && is_aligned(y.raw(), 4 * sizeof(T)) && is_aligned(mask.raw(), 4);
    launch("dropout", x.device(), grid_for((count + 3) / 4, x.device()), dropout_forward_kernel<T>, x.data<T>(), count, rule,
           static_cast<const StepStateData*>(step_state.raw()), y.data<T>(), mask.data<std::uint8_t>(), packs);
  });
}

void dropout_backward(const Tensor& grad_y, double p, const Tensor& mask, const Tensor& grad_x) {
  dispatch_numbers(grad_y.dtype(), "dropout_backward", [&]<class T>() {
    map_as(MapTypes<T, T, std::uint8_t>(), "dropout_backward", DropoutBackward{1.0 / (1.0 - p)}, grad_x, grad_y, mask);
  });
}

}  // namespace tessera::cuda
