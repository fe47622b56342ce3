// One handle of the CUDA runtime, cuBLASLt, cuDNN or cuSOLVER, destroyed with its owner. Destruction ignores failures: the driver
// may be gone by then.
#pragma once

#include <utility>

namespace tessera::cuda {

template <class Handle, auto Destroy>
class UniqueHandle {
 public:
  UniqueHandle() = default;
  explicit UniqueHandle(Handle handle) noexcept : handle_(handle) {}
  UniqueHandle(UniqueHandle&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~UniqueHandle() {
    if (handle_ != Handle{}) static_cast<void>(Destroy(handle_));
  }

  Handle get() const noexcept { return handle_; }

 private:
  Handle handle_{};
};

}  // namespace tessera::cuda
