// Where a tensor's bytes live and its kernels run: a value type, "cpu" or "cuda:N".
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

namespace tessera {

class Device {
 public:
  enum class Kind { cpu, cuda };

  constexpr Device() noexcept = default;
  static constexpr Device cpu() noexcept { return {}; }
  static constexpr Device cuda(int index = 0) noexcept { return Device(Kind::cuda, index); }

  // Accepts "cpu", "cuda" and "cuda:N". Throws ConfigError on anything else.
  static Device parse(std::string_view text);

  constexpr Kind kind() const noexcept { return kind_; }
  constexpr int index() const noexcept { return index_; }
  constexpr bool is_cpu() const noexcept { return kind_ == Kind::cpu; }
  constexpr bool is_cuda() const noexcept { return kind_ == Kind::cuda; }
  std::string name() const;

  friend constexpr bool operator==(const Device&, const Device&) noexcept = default;

 private:
  constexpr Device(Kind kind, int index) noexcept : kind_(kind), index_(index) {}

  Kind kind_ = Kind::cpu;
  int index_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Device& device);

// Throws DeviceError, naming the operation, unless the device is the CPU. Used where no other backend is built in.
void require_cpu(const Device& device, const char* operation);

}  // namespace tessera
