// A cheap handle on strided elements of one storage: no gradient, no graph. Copies share the storage. Kernels see Tensors only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/device/device.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/storage.h"

namespace tessera {

class Tensor {
 public:
  Tensor() = default;  // undefined: no storage; only defined(), assignment and destruction are legal

  // Contents are indeterminate; kernels must write every element. Throws ShapeError where 64 bits cannot count the bytes.
  static Tensor empty(const Shape& shape, DType dtype = DType::f32, Device device = {});
  static Tensor empty_like(const Tensor& other);  // contiguous, same shape, dtype and device
  static Tensor zeros(const Shape& shape, DType dtype = DType::f32, Device device = {});
  static Tensor full(const Shape& shape, double value, DType dtype = DType::f32, Device device = {});
  static Tensor scalar(double value, DType dtype = DType::f32, Device device = {});
  // Over host memory of somebody else, which holds the elements one behind the other, without a copy. It must outlive every
  // tensor that shares the storage. Throws ShapeError where it is null though there are elements, or not aligned to one of them.
  static Tensor lent(void* data, const Shape& shape, DType dtype = DType::f32);
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape);
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape) { return from(std::span<const T>(values), shape); }

  bool defined() const noexcept { return storage_ != nullptr; }
  const Shape& shape() const noexcept { return shape_; }
  const Shape& strides() const noexcept { return strides_; }  // in elements; 0 along a broadcast axis
  std::int64_t dim(int axis) const { return shape_.dim(axis); }
  int rank() const noexcept { return shape_.rank(); }
  std::int64_t numel() const noexcept { return shape_.numel(); }
  DType dtype() const noexcept { return dtype_; }
  Device device() const noexcept { return storage_ ? storage_->device() : Device(); }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(numel()) * size_of(dtype_); }
  bool is_contiguous() const noexcept;
  // True when no other Tensor or Var shares the storage, so that its owner may write in place.
  bool sole_owner() const noexcept { return storage_.use_count() == 1; }
  bool shares_storage(const Tensor& other) const noexcept { return storage_ == other.storage_; }

  // First element. Throws DTypeError when T is not the tensor's element type.
  template <class T>
  T* data() const;
  void* raw() const noexcept;

  // Views: no copy. Throw ShapeError on illegal axes, sizes or, for reshape, strides that no view can express.
  Tensor reshape(const Shape& shape) const;  // copies when the strides require it
  Tensor permute(std::span<const int> axes) const;
  Tensor permute(std::initializer_list<int> axes) const { return permute(std::span(axes.begin(), axes.size())); }
  Tensor slice(int axis, std::int64_t begin, std::int64_t end) const;
  Tensor expand(const Shape& shape) const;  // broadcasts sizes of 1 with stride 0

  Tensor contiguous() const;  // itself when already contiguous
  Tensor clone() const;       // always a fresh contiguous copy
  Tensor to(DType dtype) const;
  // The only crossing between devices; waits for the device. Counted in transfer_stats().
  Tensor to(Device device) const;
  // Same shape and device; converts dtype; writes this tensor's elements.
  void copy_from(const Tensor& source) const;
  void fill(double value) const;

  // Reads back to the host. item() needs exactly one element.
  double item() const;
  template <class T>
  std::vector<T> to_vector() const;

 private:
  Tensor(StoragePtr storage, std::int64_t offset, const Shape& shape, const Shape& strides, DType dtype);
  void check_dtype(DType asked) const;

  StoragePtr storage_;
  std::int64_t offset_ = 0;  // in elements
  Shape shape_;
  Shape strides_;
  DType dtype_ = DType::f32;
};

// "f32 [32, 784] on cpu", for messages.
std::string describe(const Tensor& tensor);

}  // namespace tessera
