// A length of training as experiment files write it: "10e" epochs, "5000s" steps, "20%" of the stage.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

struct Duration {
  enum class Unit { epochs, steps, percent };

  double amount = 0;
  Unit unit = Unit::epochs;

  static constexpr Duration epochs(double amount) { return {amount, Unit::epochs}; }
  static constexpr Duration steps(double amount) { return {amount, Unit::steps}; }
  static constexpr Duration percent(double amount) { return {amount, Unit::percent}; }
  // "10e", "0.5e", "5000s", "20%". Steps are whole. Throws ConfigError with the three forms on anything else.
  static Duration parse(std::string_view text);

  // Whole steps, rounded to nearest; a percentage is of `stage_steps`.
  std::int64_t resolve(std::int64_t steps_per_epoch, std::int64_t stage_steps) const;
  friend bool operator==(const Duration&, const Duration&) = default;
};

std::string to_string(const Duration& duration);

struct StageLength {
  std::int64_t steps = 1;
  std::int64_t steps_per_epoch = 1;
};

}  // namespace tessera
