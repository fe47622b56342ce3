#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/row_kernel.cuh"
#include "core/ops/rotary.h"
#include "core/ops/rotary_math.h"

namespace tessera::cuda {
namespace {

template <class C>
__global__ void rotary_table_kernel(std::int64_t offset, double base, std::int64_t half, std::int64_t count, C* cosines) {
  for (std::int64_t at = first_item(); at < count; at += item_stride()) {
    const double angle = static_cast<double>(offset + at / half) * rotary_rate(at % half, 2 * half, base);
    cosines[at] = static_cast<C>(cos(angle));
    cosines[count + at] = static_cast<C>(sin(angle));
  }
}

// A walk covers the first half of one head. In memory a head has two halves.
template <class T>
struct Turn {
  using C = Compute<T>;
  const T* x;
  const C* cosines;
  const C* sines;
  std::int64_t positions;
  std::int64_t heads;
  std::int64_t rotated_heads;
  std::int64_t half;
  C sign;
  T* y;

  template <class Walk>
  __device__ void operator()(const Walk& walk, bool) const {
    using Values = Numbers<T, Walk::kPack>;
    using Table = Numbers<C, Walk::kPack>;
    const bool turns = walk.row % heads < rotated_heads;
    if (!turns && x == y) return;
    const std::int64_t entry = walk.row / heads % positions * half;
    walk.for_each([&](int, std::int64_t at) {
      const std::int64_t from = at + walk.row * half;
      auto first = Values::load(x + from);
      auto second = Values::load(x + from + half);
      if (turns) {
        const auto cosine = Table::load(cosines + entry + walk.column_of(at));
        const auto sine = Table::load(sines + entry + walk.column_of(at));
        for (int i = 0; i < Walk::kPack; ++i) {
          const auto pair = rotated(first.at[i], second.at[i], cosine.at[i], sign * sine.at[i]);
          first.at[i] = pair.first;
          second.at[i] = pair.second;
        }
      }
      first.store(y + from);
      second.store(y + from + half);
    });
  }
};

}  // namespace

void rotary_table(std::int64_t offset, double base, const Tensor& table) {
  const std::int64_t count = table.numel() / 2;
  dispatch_real(table.dtype(), "rotary", [&]<class C>() {
    launch("rotary_table", table.device(), grid_for(count, table.device()), rotary_table_kernel<C>, offset, base, table.dim(2),
           count, table.data<C>());
  });
}

void rotary_turn(const Tensor& x, const Tensor& table, std::int64_t heads, bool back, const Tensor& y) {
  const std::int64_t half = table.dim(2);
  dispatch_numbers(x.dtype(), "rotary", [&]<class T>() {
    using C = Compute<T>;
    const C* const cosines = table.data<C>();
    const Turn<T> op{.x = x.data<T>(),
                     .cosines = cosines,
                     .sines = cosines + table.numel() / 2,
                     .positions = x.dim(1),
                     .heads = x.dim(2),
                     .rotated_heads = heads,
                     .half = half,
                     .sign = back ? C(-1) : C(1),
                     .y = y.data<T>()};
    launch_rows<T>("rotary", x.device(), x.dim(0) * x.dim(1) * x.dim(2), half, all_aligned(x, table, y), op);
  });
}

}  // namespace tessera::cuda
