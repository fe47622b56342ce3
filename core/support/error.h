// Typed exceptions and the one helper that throws them. Library code never prints, aborts or exits; programs catch in main.
// Message form: "op: what is wrong: operand is value, ...; rule", lower case, no trailing dot.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace tessera {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Operand shapes, strides or axes that an operation does not accept.
class ShapeError final : public Error {
 public:
  using Error::Error;
};

// Operand dtypes that an operation does not accept.
class DTypeError final : public Error {
 public:
  using Error::Error;
};

// A device that does not exist, is not built in, or differs between operands.
class DeviceError final : public Error {
 public:
  using Error::Error;
};

// A user's experiment file, override or argument; carries file:line:column where there is one.
class ConfigError final : public Error {
 public:
  using Error::Error;
};

// A file that cannot be read or written, or whose content is not what its format says.
class IoError final : public Error {
 public:
  using Error::Error;
};

// The device or the host refused an allocation.
class OutOfMemoryError final : public Error {
 public:
  using Error::Error;
  // At a limit of ours there is room for work beside the tensors; where the system itself refused, there may be none.
  static OutOfMemoryError at_limit(const std::string& message) {
    OutOfMemoryError error(message);
    error.at_limit_ = true;
    return error;
  }
  bool at_limit() const noexcept { return at_limit_; }
  // The same with the place in front; the innermost place that is named stands.
  OutOfMemoryError at(const std::string& place) const {
    if (placed_) return *this;
    OutOfMemoryError placed(place + ": " + what());
    placed.placed_ = true;
    placed.at_limit_ = at_limit_;
    return placed;
  }

 private:
  bool placed_ = false;
  bool at_limit_ = false;
};

// Values that stopped being numbers: NaN or Inf in a loss, a gradient or a weight.
class NumericError final : public Error {
 public:
  using Error::Error;
};

// A bug in tessera itself.
class InternalError final : public Error {
 public:
  using Error::Error;
};

// Concatenates everything that has operator<<. Out of line and for size, as most callers are about to throw: compilers would
// spend much of their time on these calls.
template <class... Parts>
[[gnu::cold, gnu::noinline]] std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

}  // namespace tessera

// Throws Type with the concatenation of the remaining arguments when the condition does not hold.
#define TESSERA_CHECK(condition, Type, ...)                        \
  do {                                                             \
    if (!(condition)) throw ::tessera::Type(::tessera::str(__VA_ARGS__)); \
  } while (false)
