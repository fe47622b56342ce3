#include "core/tensor.h"

#include <algorithm>
#include <cstring>

#include "core/device/dispatch.h"
#include "core/tensor_backend.h"

namespace tessera {
namespace {

// Does nothing without CUDA: Storage then refuses every device but the CPU.
void copy_across([[maybe_unused]] const Tensor& source, [[maybe_unused]] const Tensor& target) {
#if TESSERA_HAS_CUDA
  cuda::copy_across(source, target);
#endif
}

std::size_t bytes_of(const Shape& shape, DType dtype) {
  auto bytes = static_cast<std::int64_t>(size_of(dtype));
  for (const std::int64_t size : shape) {  // a 0 counts as 1: strides must fit too
    TESSERA_CHECK(!__builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes), ShapeError, "tensor: ", dtype, ' ',
                  shape, " has more bytes than 64 bits can count");
  }
  return static_cast<std::size_t>(shape.numel()) * size_of(dtype);
}

}  // namespace

Tensor::Tensor(StoragePtr storage, std::int64_t offset, const Shape& shape, const Shape& strides, DType dtype)
    : storage_(std::move(storage)), offset_(offset), shape_(shape), strides_(strides), dtype_(dtype) {}

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  const std::size_t bytes = bytes_of(shape, dtype);  // comes first: throws where the strides would overflow
  return Tensor(std::make_shared<Storage>(bytes, device), 0, shape, shape.contiguous_strides(), dtype);
}

Tensor Tensor::lent(void* data, const Shape& shape, DType dtype) {
  const std::size_t bytes = bytes_of(shape, dtype);
  TESSERA_CHECK(data != nullptr || bytes == 0, ShapeError, "tensor: the lent memory of ", dtype, ' ', shape, " is null");
  TESSERA_CHECK(reinterpret_cast<std::uintptr_t>(data) % size_of(dtype) == 0, ShapeError, "tensor: the lent memory of ", dtype,
                ' ', shape, " begins at ", data, "; must be aligned to ", size_of(dtype), " bytes");
  return Tensor(std::make_shared<Storage>(data, bytes), 0, shape, shape.contiguous_strides(), dtype);
}

Tensor Tensor::empty_like(const Tensor& other) { return empty(other.shape(), other.dtype(), other.device()); }

Tensor Tensor::zeros(const Shape& shape, DType dtype, Device device) { return full(shape, 0.0, dtype, device); }

Tensor Tensor::full(const Shape& shape, double value, DType dtype, Device device) {
  Tensor tensor = empty(shape, dtype, device);
  tensor.fill(value);
  return tensor;
}

Tensor Tensor::scalar(double value, DType dtype, Device device) { return full({}, value, dtype, device); }

template <class T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape) {
  TESSERA_CHECK(static_cast<std::int64_t>(values.size()) == shape.numel(), ShapeError, "tensor: ", values.size(),
                " values do not fill shape ", shape);
  Tensor tensor = empty(shape, dtype_of<T>);
  if (!values.empty()) std::memcpy(tensor.raw(), values.data(), values.size_bytes());
  return tensor;
}

bool Tensor::is_contiguous() const noexcept {
  std::int64_t expected = 1;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    if (shape_[axis] == 1) continue;
    if (strides_[axis] != expected) return numel() == 0;
    expected *= shape_[axis];
  }
  return true;
}

void Tensor::check_dtype(DType asked) const {
  TESSERA_CHECK(dtype_ == asked, DTypeError, "tensor: data asked as ", asked, ", tensor is ", describe(*this));
}

template <class T>
T* Tensor::data() const {
  check_dtype(dtype_of<T>);
  return static_cast<T*>(raw());
}

void* Tensor::raw() const noexcept {
  return storage_ ? static_cast<std::byte*>(storage_->data()) + static_cast<std::size_t>(offset_) * size_of(dtype_) : nullptr;
}

Tensor Tensor::reshape(const Shape& shape) const {
  TESSERA_CHECK(shape.numel() == numel(), ShapeError, "reshape: ", shape_, " has ", numel(), " elements, ", shape, " has ",
                shape.numel());
  const Tensor source = contiguous();
  return Tensor(source.storage_, source.offset_, shape, shape.contiguous_strides(), dtype_);
}

Tensor Tensor::permute(std::span<const int> axes) const {
  TESSERA_CHECK(static_cast<int>(axes.size()) == rank(), ShapeError, "permute: ", axes.size(), " axes for shape ", shape_);
  Shape shape = shape_;
  Shape strides = strides_;
  unsigned seen = 0;
  for (int i = 0; i < rank(); ++i) {
    const int axis = normalize_axis(axes[static_cast<std::size_t>(i)], rank(), "permute");
    TESSERA_CHECK((seen & (1u << axis)) == 0, ShapeError, "permute: axis ", axis, " stands twice; shape is ", shape_);
    seen |= 1u << axis;
    shape.set(i, shape_[axis]);
    strides.set(i, strides_[axis]);
  }
  return Tensor(storage_, offset_, shape, strides, dtype_);
}

Tensor Tensor::slice(int axis, std::int64_t begin, std::int64_t end) const {
  const int at = normalize_axis(axis, rank(), "slice");
  TESSERA_CHECK(0 <= begin && begin <= end && end <= shape_[at], ShapeError, "slice: ", begin, " to ", end, " of axis ", at,
                ", shape is ", shape_);
  Shape shape = shape_;
  shape.set(at, end - begin);
  return Tensor(storage_, offset_ + begin * strides_[at], shape, strides_, dtype_);
}

Tensor Tensor::expand(const Shape& shape) const {
  TESSERA_CHECK(broadcast_shapes(shape_, shape, "expand") == shape, ShapeError, "expand: ", shape_, " does not broadcast to ",
                shape);
  Shape strides = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int from = axis - (shape.rank() - rank());
    strides.set(axis, from < 0 || shape_[from] == 1 ? 0 : strides_[from]);
  }
  return Tensor(storage_, offset_, shape, strides, dtype_);
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::clone() const {
  Tensor copy = empty_like(*this);
  copy.copy_from(*this);
  return copy;
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return *this;
  Tensor copy = empty(shape_, dtype, device());
  copy.copy_from(*this);
  return copy;
}

Tensor Tensor::to(Device target) const {
  if (target == device()) return *this;
  const Tensor source = contiguous();
  Tensor copy = empty(shape_, dtype_, target);
  copy_across(source, copy);
  return copy;
}

void Tensor::copy_from(const Tensor& source) const {
  TESSERA_CHECK(source.shape() == shape_, ShapeError, "copy_from: source is ", source.shape(), ", target is ", shape_);
  TESSERA_CHECK(source.device() == device(), DeviceError, "copy_from: source is on ", source.device(), ", target on ", device());
  TESSERA_BACKEND(device(), strided_copy, source, *this);
}

void Tensor::fill(double value) const { TESSERA_BACKEND(device(), fill, *this, value); }

double Tensor::item() const {
  TESSERA_CHECK(numel() == 1, ShapeError, "item: tensor is ", shape_, "; needs exactly one element");
  return to(Device::cpu()).to(DType::f64).contiguous().data<double>()[0];
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  check_dtype(dtype_of<T>);
  const Tensor host = to(Device::cpu()).contiguous();
  return std::vector<T>(host.data<T>(), host.data<T>() + host.numel());
}

#define TESSERA_TENSOR_ACCESS(T)                                     \
  template Tensor Tensor::from<T>(std::span<const T>, const Shape&); \
  template T* Tensor::data<T>() const;                               \
  template std::vector<T> Tensor::to_vector<T>() const;
TESSERA_TENSOR_ACCESS(float)
TESSERA_TENSOR_ACCESS(bfloat16)
TESSERA_TENSOR_ACCESS(float16)
TESSERA_TENSOR_ACCESS(double)
TESSERA_TENSOR_ACCESS(std::int32_t)
TESSERA_TENSOR_ACCESS(std::int64_t)
TESSERA_TENSOR_ACCESS(std::uint8_t)
#undef TESSERA_TENSOR_ACCESS

std::string describe(const Tensor& tensor) {
  return tensor.defined() ? str(tensor.dtype(), " ", tensor.shape(), " on ", tensor.device()) : "undefined";
}

}  // namespace tessera
