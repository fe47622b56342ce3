// A layer that takes as long as it says, for tests of what is decided and written from times.
#pragma once

#include <chrono>
#include <string>

#include "core/nn/module.h"

namespace tessera::testing {

using Microseconds = std::chrono::microseconds;

inline constexpr Microseconds kQuick{20};
inline constexpr Microseconds kSlow{600};  // so far apart that no other load turns the order round

// Identity, that keeps a processor busy; as long as it says inside a tree, and as long as it says on its own.
class Busy final : public Module {
 public:
  Busy(std::string name, Microseconds alone, Microseconds inside) : name_(std::move(name)), alone_(alone), inside_(inside) {}
  Busy(std::string name, Microseconds time) : Busy(std::move(name), time, time) {}
  std::string_view kind() const override { return name_; }
  Value config() const override {
    Value value = Value::map();
    value.set("alone", static_cast<std::int64_t>(alone_.count()));
    value.set("inside", static_cast<std::int64_t>(inside_.count()));
    return value;
  }
  Var forward(const Var& x, const Context&) override {
    ++calls;
    const auto end = std::chrono::steady_clock::now() + (path().empty() ? alone_ : inside_);
    while (std::chrono::steady_clock::now() < end) {
    }
    return x;
  }
  Shape output_shape(const Shape& input, Trace* trace) const override {
    trace_leaf(trace, input, input, 0);
    return input;
  }

  static inline int calls = 0;

 private:
  std::string name_;
  Microseconds alone_;
  Microseconds inside_;
};

}  // namespace tessera::testing
