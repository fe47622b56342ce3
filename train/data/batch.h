// Samples that go through a network together.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/device.h"
#include "core/nn/named_tensor.h"

namespace tessera {

// A part that every sample of a data set has.
struct Field {
  std::string name;
  DType dtype = DType::f32;
  Shape shape = {};  // of one sample
  std::int64_t limit = 0;  // whole numbers are in [0, limit); 0: no limit is known

  friend bool operator==(const Field&, const Field&) = default;
};

// Named tensors, each with the samples along its first dimension, in the order of the data set's fields. The first one is what a
// network reads. Copies share the tensors.
class Batch {
 public:
  using Part = NamedTensor;

  Batch() = default;
  // Throws ShapeError where the parts have different numbers of samples.
  Batch(std::initializer_list<Part> parts) : Batch(std::vector<Part>(parts)) {}
  explicit Batch(std::vector<Part> parts);
  static Batch empty(std::span<const Field> fields, std::int64_t samples, Device device = {});  // contents are indeterminate
  static Batch zeros(std::span<const Field> fields, std::int64_t samples, Device device = {});
  static Batch empty_like(const Batch& other);

  // Throws InternalError where no part has the name.
  const Tensor& at(std::string_view name) const;
  const Tensor& input() const { return parts_.front().tensor; }
  const std::vector<Part>& parts() const noexcept { return parts_; }
  std::int64_t samples() const { return input().dim(0); }
  Device device() const { return input().device(); }
  std::vector<Field> fields() const;  // without limits, which tensors do not tell

  Batch slice(std::int64_t begin, std::int64_t end) const;  // these samples, without copying
  Batch to(Device device) const;
  void copy_from(const Batch& source) const;  // writes the elements; parts and shapes are those of `source`

 private:
  std::vector<Part> parts_;
};

// The shape of a batch of `samples` samples: [samples, ...].
Shape batch_shape(const Shape& sample, std::int64_t samples);

}  // namespace tessera
