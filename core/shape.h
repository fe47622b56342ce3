// Sizes of a tensor's dimensions, outermost first. Up to 8 dimensions, held inline. Rank 0 is a scalar with one element.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>

namespace tessera {

class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes);  // throws ShapeError on a negative size or more than kMaxRank
  explicit Shape(std::span<const std::int64_t> sizes);

  int rank() const noexcept { return rank_; }
  // Size along a dimension; negative axes count from the end. Throws ShapeError when out of range.
  std::int64_t dim(int axis) const;
  std::int64_t operator[](int axis) const noexcept { return sizes_[static_cast<std::size_t>(axis)]; }
  void set(int axis, std::int64_t size);
  // Product of all sizes: 1 for a scalar, 0 when any size is 0.
  std::int64_t numel() const noexcept;

  const std::int64_t* begin() const noexcept { return sizes_.data(); }
  const std::int64_t* end() const noexcept { return sizes_.data() + rank_; }

  // Row-major strides in elements.
  Shape contiguous_strides() const;
  Shape append(std::int64_t size) const;
  Shape erase(int axis) const;

  friend bool operator==(const Shape& a, const Shape& b) noexcept;

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);  // "[32, 784]"

// Turns a possibly negative axis into 0..rank-1. Throws ShapeError naming the operation.
int normalize_axis(int axis, int rank, const char* operation);

// The shape both operands broadcast to by the usual trailing-dimension rule. Throws ShapeError naming both shapes.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* operation);

}  // namespace tessera
