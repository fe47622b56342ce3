#include <algorithm>
#include <cmath>
#include <vector>

#include "core/compute_type.h"
#include "core/cpu/parallel.h"
#include "core/cpu/rows/problem.h"
#include "core/ops/rotary.h"
#include "core/ops/rotary_math.h"

namespace tessera::cpu {
namespace {

constexpr std::int64_t kTableGrain = 256;  // small, since a sine takes as long as dozens of other elements

template <class C>
void fill_table(std::int64_t offset, const std::vector<double>& rates, std::int64_t positions, C* cosines, C* sines) {
  const auto half = static_cast<std::int64_t>(rates.size());
  parallel_for(positions * half, kTableGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      const double angle = static_cast<double>(offset + at / half) * rates[static_cast<std::size_t>(at % half)];
      cosines[at] = static_cast<C>(std::cos(angle));
      sines[at] = static_cast<C>(std::sin(angle));
    }
  });
}

// Rotates the heads of one position.
template <class T, class C = Compute<T>>
void turn(const T* x, const C* cosine, const C* sine, const rows::HeadRow& row, C sign, rows::Stores stores, T* y) {
  if constexpr (!std::is_same_v<T, double>) {
    rows::kernels().of<T>().rotate(x, cosine, sine, row, sign, stores, y);
  } else {
    const std::int64_t n = row.half;
    for (std::int64_t head = 0; head < row.rotated; ++head) {
      const T* const from = x + head * 2 * n;
      T* const to = y + head * 2 * n;
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) {
        const RotaryPair<T> pair = rotated(from[i], from[n + i], cosine[i], sign * sine[i]);
        to[i] = pair.first;
        to[n + i] = pair.second;
      }
    }
    if (x != y) std::copy(x + row.rotated * 2 * n, x + row.heads * 2 * n, y + row.rotated * 2 * n);
  }
}

}  // namespace

void rotary_table(std::int64_t offset, double base, const Tensor& table) {
  std::vector<double> rates(static_cast<std::size_t>(table.dim(2)));
  for (std::size_t i = 0; i < rates.size(); ++i) {
    rates[i] = rotary_rate(static_cast<std::int64_t>(i), 2 * table.dim(2), base);
  }
  dispatch_real(table.dtype(), "rotary", [&]<class C>() {
    C* const cosines = table.data<C>();
    fill_table(offset, rates, table.dim(1), cosines, cosines + table.numel() / 2);
  });
}

void rotary_turn(const Tensor& x, const Tensor& table, std::int64_t heads, bool back, const Tensor& y) {
  const rows::HeadRow row{x.dim(2), heads, table.dim(2)};
  const std::int64_t positions = x.dim(1), width = row.heads * 2 * row.half;
  const bool in_place = x.raw() == y.raw();
  const rows::Stores stores = in_place ? rows::Stores::cached : rows::stores_for(static_cast<std::int64_t>(y.bytes()));
  dispatch_floating(x.dtype(), "rotary", [&]<class T>() {
    using C = Compute<T>;
    const C* const cosines = table.data<C>();
    const C* const sines = cosines + table.numel() / 2;
    parallel_rows(x.dim(0) * positions, width, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t at = i % positions * row.half;
        turn(x.data<T>() + i * width, cosines + at, sines + at, row, back ? C(-1) : C(1), stores, y.data<T>() + i * width);
      }
    });
  });
}

}  // namespace tessera::cpu
