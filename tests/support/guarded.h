// Tensors inside larger buffers whose margins show every write outside of the tensor, and every write into it.
#pragma once

#include <cstring>
#include <limits>

#include "core/tensor.h"

namespace tessera::testing {

class Guarded {
 public:
  // Elements on either side; NaN (or -1), so that reads show too. Odd, so that the tensor's address is a multiple of its
  // elements' size and of no vector's.
  static constexpr std::int64_t kMargin = 61;

  explicit Guarded(const Tensor& x)
      : buffer_(Tensor::full({x.numel() + 2 * kMargin}, is_floating(x.dtype()) ? std::numeric_limits<double>::quiet_NaN() : -1.0,
                             x.dtype(), x.device())),
        tensor_(buffer_.slice(0, kMargin, kMargin + x.numel()).reshape(x.shape())) {
    tensor_.copy_from(x);
    before_ = buffer_.clone();
  }

  const Tensor& tensor() const noexcept { return tensor_; }
  // Nothing in the buffer has changed, neither margins nor elements.
  bool intact() const { return is_unchanged(0, buffer_.numel()); }
  // The tensor may have been written.
  bool margins_intact() const { return is_unchanged(0, kMargin) && is_unchanged(buffer_.numel() - kMargin, buffer_.numel()); }

 private:
  bool is_unchanged(std::int64_t begin, std::int64_t end) const {
    const Tensor before = before_.slice(0, begin, end).to(Device::cpu());
    const Tensor after = buffer_.slice(0, begin, end).to(Device::cpu());
    return std::memcmp(before.raw(), after.raw(), after.bytes()) == 0;
  }

  Tensor buffer_;
  Tensor tensor_;
  Tensor before_;
};

}  // namespace tessera::testing
