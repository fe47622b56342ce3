#include "core/cuda/kernel/ordered_sum.h"

#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/elements.cuh"
#include "core/cuda/kernel/launch.cuh"

namespace tessera::cuda {
namespace {

// A number outside the rows becomes `rows`, which sorts after all of them.
__global__ void number_rows_kernel(const std::int64_t* numbers, std::int64_t count, std::int64_t rows, std::uint32_t* keys,
                                   std::int32_t* positions) {
  for (std::int64_t i = first_item(); i < count; i += item_stride()) {
    const std::int64_t number = numbers[i];
    keys[i] = static_cast<std::uint32_t>(number >= 0 && number < rows ? number : rows);
    positions[i] = static_cast<std::int32_t>(i);
  }
}

// begins[r]: index of the first sorted key that is not below r, for r in 0..rows.
__global__ void row_begins_kernel(const std::uint32_t* keys, std::int64_t count, std::int64_t rows, std::int32_t* begins) {
  for (std::int64_t row = first_item(); row <= rows; row += item_stride()) {
    std::int64_t low = 0;
    std::int64_t high = count;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (keys[middle] < row) low = middle + 1;
      else high = middle;
    }
    begins[row] = static_cast<std::int32_t>(low);
  }
}

template <class T>
__global__ void ordered_sum_kernel(const std::int32_t* begins, const std::int32_t* positions, const T* source, std::int64_t width,
                                   std::int64_t count, T* target) {
  for (std::int64_t i = first_item(); i < count; i += item_stride()) {
    const std::int64_t row = i / width;
    const std::int64_t column = i - row * width;
    const std::int32_t end = begins[row + 1];
    Compute<T> sum = 0;
#pragma unroll 4
    for (std::int32_t k = begins[row]; k < end; ++k) sum += number_of(source[positions[k] * width + column]);
    target[i] = element_of<T>(sum);
  }
}

struct Sorted {
  Tensor keys;
  Tensor positions;
};

Sorted sort_numbers(const char* operation, const Tensor& numbers, std::int64_t rows) {
  const Device device = numbers.device();
  const std::int64_t count = numbers.numel();
  const auto fresh = [&] { return Tensor::empty({count}, DType::i32, device); };
  const Tensor keys = fresh();
  const Tensor positions = fresh();
  Sorted sorted{fresh(), fresh()};
  auto* const from = static_cast<std::uint32_t*>(keys.raw());
  auto* const to = static_cast<std::uint32_t*>(sorted.keys.raw());
  launch(operation, device, grid_for(count, device), number_rows_kernel, numbers.data<std::int64_t>(), count, rows, from,
         positions.data<std::int32_t>());
  const int bits = std::bit_width(static_cast<std::uint64_t>(rows));
  std::size_t bytes = 0;
  const auto sort = [&](void* memory) {
    check(cub::DeviceRadixSort::SortPairs(memory, bytes, from, to, positions.data<std::int32_t>(),
                                          sorted.positions.data<std::int32_t>(), static_cast<int>(count), 0, bits,
                                          stream_of(device)),
          operation);
  };
  sort(nullptr);
  const Tensor memory = Tensor::empty({static_cast<std::int64_t>(bytes)}, DType::u8, device);
  sort(memory.raw());
  return sorted;
}

}  // namespace

void ordered_row_sums(const char* operation, const Tensor& numbers, const Tensor& source, const Tensor& target) {
  constexpr std::int64_t kLimit = (std::int64_t{1} << 31) - 1;
  const std::int64_t rows = target.dim(0);
  const std::int64_t count = numbers.numel();
  TESSERA_CHECK(count < kLimit && rows < kLimit, ShapeError, operation, ": numbers is ", describe(numbers), ", target is ",
                describe(target), "; needs fewer than 2^31 numbers and rows");
  if (target.numel() == 0) return;
  if (count == 0) return target.fill(0.0);
  const Sorted sorted = sort_numbers(operation, numbers, rows);
  const Device device = target.device();
  const Tensor begins = Tensor::empty({rows + 1}, DType::i32, device);
  launch(operation, device, grid_for(rows + 1, device), row_begins_kernel, static_cast<const std::uint32_t*>(sorted.keys.raw()),
         count, rows, begins.data<std::int32_t>());
  dispatch_numbers(target.dtype(), operation, [&]<class T>() {
    launch(operation, device, grid_for(target.numel(), device), ordered_sum_kernel<T>, begins.data<std::int32_t>(),
           sorted.positions.data<std::int32_t>(), source.data<T>(), target.dim(1), target.numel(), target.data<T>());
  });
}

}  // namespace tessera::cuda
