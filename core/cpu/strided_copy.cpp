#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/cpu/strided.h"
#include "core/cpu/tiled_copy.h"
#include "core/support/profile.h"
#include "core/tensor_backend.h"

namespace tessera::cpu {
namespace {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) return value;
  else if constexpr (is_half<From>) return convert<To>(static_cast<float>(value));
  else if constexpr (is_half<To>) return To(static_cast<float>(value));
  else return static_cast<To>(value);
}

template <class From, class To>
void copy_rows(const StridedLoop<2>& loop, const From* source, To* target) {
  const std::int64_t step_from = loop.inner_stride(0);
  const std::int64_t step_to = loop.inner_stride(1);
  for_each_row(loop, [&](const std::array<std::int64_t, 2>& at, std::int64_t length) {
    const From* from = source + at[0];
    To* to = target + at[1];
    if (std::is_same_v<From, To> && step_from == 1 && step_to == 1) {
      std::memcpy(static_cast<void*>(to), from, static_cast<std::size_t>(length) * sizeof(To));
      return;
    }
    if (step_from == 1 && step_to == 1) {
#pragma omp simd
      for (std::int64_t i = 0; i < length; ++i) to[i] = convert<To>(from[i]);
    } else if (step_from == 0 && step_to == 1) {
      std::fill_n(to, length, convert<To>(*from));
    } else {
      for (std::int64_t i = 0; i < length; ++i) to[i * step_to] = convert<To>(from[i * step_from]);
    }
  });
}

Tensor one_element(DType dtype, double value) {
  const Tensor one = Tensor::empty({}, dtype);
  dispatch_all(dtype, [&]<class T>() {
    if constexpr (is_half<T>) {
      *one.data<T>() = T(static_cast<float>(value));
    } else {
      *one.data<T>() = static_cast<T>(value);
    }
  });
  return one;
}

}  // namespace

void strided_copy(const Tensor& source, const Tensor& target) {
  const KernelTimer timer;
  const auto loop = make_strided_loop<2>({&source, &target});
  if (source.dtype() == DType::f32 && target.dtype() == DType::f32 &&
      tiled_copy(loop, source.data<float>(), target.data<float>())) {
    return;
  }
  dispatch_all(source.dtype(), [&]<class From>() {
    dispatch_all(target.dtype(), [&]<class To>() { copy_rows(loop, source.data<From>(), target.data<To>()); });
  });
}

void fill(const Tensor& target, double value) { strided_copy(one_element(target.dtype(), value).expand(target.shape()), target); }

}  // namespace tessera::cpu
