#include "core/cuda/libraries/product_weights.h"

#include <array>
#include <functional>
#include <memory>

#include "core/device/constant_weights.h"

namespace tessera::cuda {
namespace {

enum class Form { rounded, padded, count };

// The key under which tensors derived from weights are kept: one for each form and dtype.
const std::shared_ptr<const void>& user_of(Form form, DType dtype) {
  constexpr std::size_t kDtypes = 8;
  using Users = std::array<std::shared_ptr<const void>, kDtypes* static_cast<std::size_t>(Form::count)>;
  static const Users& users = *[] {
    auto* const made = new Users;
    for (auto& user : *made) user = std::make_shared<char>();
    return made;
  }();
  return users[static_cast<std::size_t>(form) * kDtypes + static_cast<std::size_t>(dtype)];
}

// The kept tensor is returned as a view in `shape`, because one weight may be read as a matrix and as filters.
Tensor derived(Form form, DType dtype, const Tensor& weight, const Shape& shape, const std::function<Tensor()>& derive) {
  ConstantWeights* const constant = ConstantWeights::current();
  return constant == nullptr ? derive() : constant->derived(user_of(form, dtype), weight, derive).reshape(shape);
}

}  // namespace

Tensor rounded_weight(const Tensor& weight, DType dtype) {
  if (weight.dtype() == dtype) return weight;
  return derived(Form::rounded, dtype, weight, weight.shape(), [&] { return weight.to(dtype); });
}

Tensor padded_channels(const Tensor& x, std::int64_t channels) {
  const int last = x.rank() - 1;
  if (x.dim(last) == channels) return x;
  Shape shape = x.shape();
  shape.set(last, channels);
  const Tensor padded = Tensor::zeros(shape, x.dtype(), x.device());
  padded.slice(last, 0, x.dim(last)).copy_from(x);
  return padded;
}

Tensor padded_weight(const Tensor& weight, std::int64_t rows, std::int64_t channels, DType dtype) {
  const int last = weight.rank() - 1;
  if (weight.dim(0) == rows && weight.dim(last) == channels) return rounded_weight(weight, dtype);
  Shape shape = weight.shape();
  shape.set(0, rows);
  shape.set(last, channels);
  return derived(Form::padded, dtype, weight, shape, [&] {
    const Tensor padded = Tensor::zeros(shape, dtype, weight.device());
    padded.slice(0, 0, weight.dim(0)).slice(last, 0, weight.dim(last)).copy_from(weight);
    return padded;
  });
}

}  // namespace tessera::cuda
