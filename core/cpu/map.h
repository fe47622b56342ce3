// Elementwise kernels over strided operands: y = f(a, b, ...), with the mathematics in a functor that both devices share.
#pragma once

#include <cstddef>
#include <utility>

#include "core/compute_type.h"
#include "core/cpu/strided.h"

namespace tessera::cpu {

namespace detail {

template <class T, class F, std::size_t... K>
void map_typed(const F& f, const Tensor& y, const std::array<const Tensor*, sizeof...(K)>& inputs, std::index_sequence<K...>) {
  const auto loop = make_strided_loop<sizeof...(K) + 1>({&y, inputs[K]...});
  T* const out = y.data<T>();
  const std::array<const T*, sizeof...(K)> in{inputs[K]->template data<T>()...};
  bool unit = loop.inner_stride(0) == 1;
  ((unit = unit && loop.inner_stride(K + 1) == 1), ...);
  for_each_row(loop, [&](const auto& at, std::int64_t length) {
    T* const to = out + at[0];
    if (unit) {
#pragma omp simd
      for (std::int64_t i = 0; i < length; ++i) to[i] = narrow<T>(f(widen(in[K][at[K + 1] + i])...));
    } else {
      const std::int64_t step = loop.inner_stride(0);
      for (std::int64_t i = 0; i < length; ++i) {
        to[i * step] = narrow<T>(f(widen(in[K][at[K + 1] + i * loop.inner_stride(K + 1)])...));
      }
    }
  });
}

}  // namespace detail

// y [shape], inputs broadcast to it; all of one dtype, f32, f64 or bf16. y may be one of the inputs. Functor: C operator()(C...)
// with C = float or double.
template <class F, class... Inputs>
void map(const char* operation, const F& f, const Tensor& y, const Inputs&... inputs) {
  const std::array<Tensor, sizeof...(Inputs)> expanded{inputs.expand(y.shape())...};
  std::array<const Tensor*, sizeof...(Inputs)> operands{};
  for (std::size_t k = 0; k < operands.size(); ++k) operands[k] = &expanded[k];
  dispatch_floating(y.dtype(), operation, [&]<class T>() {
    detail::map_typed<T>(f, y, operands, std::make_index_sequence<sizeof...(Inputs)>{});
  });
}

}  // namespace tessera::cpu
