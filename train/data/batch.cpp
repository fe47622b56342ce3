#include "train/data/batch.h"

#include <algorithm>
#include <utility>

#include "core/support/error.h"

namespace tessera {
namespace {

template <class Make>
Batch made(std::span<const Field> fields, std::int64_t samples, const Make& make) {
  std::vector<Batch::Part> parts;
  for (const Field& field : fields) parts.push_back({field.name, make(batch_shape(field.shape, samples), field.dtype)});
  return Batch(std::move(parts));
}

template <class Change>
Batch changed(const Batch& batch, const Change& change) {
  std::vector<Batch::Part> parts;
  for (const Batch::Part& part : batch.parts()) parts.push_back({part.name, change(part.tensor)});
  return Batch(std::move(parts));
}

}  // namespace

Batch::Batch(std::vector<Part> parts) : parts_(std::move(parts)) {
  for (const Part& part : parts_) {
    TESSERA_CHECK(part.tensor.rank() >= 1 && part.tensor.dim(0) == samples(), ShapeError, "batch: ", parts_[0].name, " is ",
                  parts_[0].tensor.shape(), ", ", part.name, " is ", part.tensor.shape(),
                  "; needs the same number of samples along the first dimension");
  }
}

Batch Batch::empty(std::span<const Field> fields, std::int64_t samples, Device device) {
  return made(fields, samples, [&](const Shape& shape, DType dtype) { return Tensor::empty(shape, dtype, device); });
}

Batch Batch::zeros(std::span<const Field> fields, std::int64_t samples, Device device) {
  return made(fields, samples, [&](const Shape& shape, DType dtype) { return Tensor::zeros(shape, dtype, device); });
}

Batch Batch::empty_like(const Batch& other) { return changed(other, &Tensor::empty_like); }

const Tensor& Batch::at(std::string_view name) const {
  const auto found = std::ranges::find(parts_, name, &Part::name);
  if (found != parts_.end()) return found->tensor;
  std::string known;
  for (const Part& part : parts_) known += str(known.empty() ? "" : ", ", part.name);
  throw InternalError(str("batch: no part '", name, "'; it has ", known));
}

std::vector<Field> Batch::fields() const {
  std::vector<Field> fields;
  for (const Part& part : parts_) fields.push_back({part.name, part.tensor.dtype(), part.tensor.shape().erase(0)});
  return fields;
}

Batch Batch::slice(std::int64_t begin, std::int64_t end) const {
  return changed(*this, [&](const Tensor& tensor) { return tensor.slice(0, begin, end); });
}

Batch Batch::to(Device device) const {
  return changed(*this, [&](const Tensor& tensor) { return tensor.to(device); });
}

void Batch::copy_from(const Batch& source) const {
  for (const Part& part : parts_) part.tensor.copy_from(source.at(part.name));
}

Shape batch_shape(const Shape& sample, std::int64_t samples) {
  Shape shape{samples};
  for (const std::int64_t size : sample) shape = shape.append(size);
  return shape;
}

}  // namespace tessera
