#include "core/shape.h"

#include <algorithm>
#include <ostream>

#include "core/support/error.h"

namespace tessera {

Shape::Shape(std::initializer_list<std::int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const std::int64_t> sizes) {
  TESSERA_CHECK(sizes.size() <= kMaxRank, ShapeError, "shape: ", sizes.size(), " dimensions; at most ", kMaxRank);
  for (const std::int64_t size : sizes) {
    TESSERA_CHECK(size >= 0, ShapeError, "shape: size ", size, " is negative");
    sizes_[static_cast<std::size_t>(rank_++)] = size;
  }
}

std::int64_t Shape::dim(int axis) const { return (*this)[normalize_axis(axis, rank_, "shape")]; }

void Shape::set(int axis, std::int64_t size) { sizes_[static_cast<std::size_t>(normalize_axis(axis, rank_, "shape"))] = size; }

std::int64_t Shape::numel() const noexcept {
  std::int64_t product = 1;
  for (const std::int64_t size : *this) product *= size;
  return product;
}

Shape Shape::contiguous_strides() const {
  Shape strides = *this;
  std::int64_t stride = 1;
  for (int axis = rank_ - 1; axis >= 0; --axis) {
    strides.sizes_[static_cast<std::size_t>(axis)] = stride;
    stride *= (*this)[axis];
  }
  return strides;
}

Shape Shape::append(std::int64_t size) const {
  TESSERA_CHECK(rank_ < kMaxRank, ShapeError, "shape: cannot append to ", *this, "; at most ", kMaxRank, " dimensions");
  Shape longer = *this;
  longer.sizes_[static_cast<std::size_t>(longer.rank_++)] = size;
  return longer;
}

Shape Shape::erase(int axis) const {
  const int at = normalize_axis(axis, rank_, "shape");
  Shape shorter;
  for (int i = 0; i < rank_; ++i) {
    if (i != at) shorter.sizes_[static_cast<std::size_t>(shorter.rank_++)] = (*this)[i];
  }
  return shorter;
}

bool operator==(const Shape& a, const Shape& b) noexcept { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (int axis = 0; axis < shape.rank(); ++axis) out << (axis ? ", " : "") << shape[axis];
  return out << ']';
}

int normalize_axis(int axis, int rank, const char* operation) {
  TESSERA_CHECK(axis >= -rank && axis < rank, ShapeError, operation, ": axis ", axis, " is out of range for ", rank,
                " dimensions; legal: ", -rank, " to ", rank - 1);
  return axis < 0 ? axis + rank : axis;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* operation) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, Shape::kMaxRank> sizes{};
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t size_a = i <= a.rank() ? a[a.rank() - i] : 1;
    const std::int64_t size_b = i <= b.rank() ? b[b.rank() - i] : 1;
    TESSERA_CHECK(size_a == size_b || size_a == 1 || size_b == 1, ShapeError, operation,
                  ": shapes do not broadcast: a is ", a, ", b is ", b, "; sizes must be equal or 1");
    sizes[static_cast<std::size_t>(rank - i)] = size_a == 1 ? size_b : size_a;
  }
  return Shape(std::span<const std::int64_t>(sizes.data(), static_cast<std::size_t>(rank)));
}

}  // namespace tessera
