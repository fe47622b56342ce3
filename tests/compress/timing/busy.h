// Layers that take as long as they say, for tests of what is decided and written from times. No time passes: a clock that they
// move on is read in place of the host's, so that no other load of the machine changes a time.
#pragma once

#include <chrono>
#include <string>

#include "core/device/device_work.h"
#include "core/nn/module.h"

namespace tessera::testing {

using Microseconds = std::chrono::microseconds;

inline constexpr Microseconds kQuick{20};
inline constexpr Microseconds kSlow{600};

// Is read while it lives; on its own it stands still.
class PlannedClock {
 public:
  static void pass(Microseconds time) { now_ += time; }

 private:
  static inline Microseconds now_{0};
  HostClock clock_{[] { return std::chrono::duration<double>(now_).count(); }};
};

// Identity that takes the time of time_of().
class Planned : public Module {
 public:
  explicit Planned(std::string kind) : kind_(std::move(kind)) {}
  std::string_view kind() const override { return kind_; }
  Var forward(const Var& x, const Context& context) override {
    ++calls;
    PlannedClock::pass(time_of(x, context));
    return x;
  }
  Shape output_shape(const Shape& input, Trace* trace) const override {
    trace_leaf(trace, input, input, 0);
    return input;
  }

  static inline int calls = 0;

 private:
  virtual Microseconds time_of(const Var& x, const Context& context) const = 0;

  std::string kind_;
};

// As long as it says inside a tree, and as long as it says on its own.
class Busy final : public Planned {
 public:
  Busy(std::string kind, Microseconds alone, Microseconds inside) : Planned(std::move(kind)), alone_(alone), inside_(inside) {}
  Busy(std::string kind, Microseconds time) : Busy(std::move(kind), time, time) {}
  Value config() const override {
    Value value = Value::map();
    value.set("alone", static_cast<std::int64_t>(alone_.count()));
    value.set("inside", static_cast<std::int64_t>(inside_.count()));
    return value;
  }

 private:
  Microseconds time_of(const Var&, const Context&) const override { return path().empty() ? alone_ : inside_; }

  Microseconds alone_;
  Microseconds inside_;
};

}  // namespace tessera::testing
