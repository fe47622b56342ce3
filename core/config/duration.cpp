#include "core/config/duration.h"

#include <charconv>
#include <cmath>

#include "core/support/error.h"

namespace tessera {
namespace {

constexpr double kLongest = 1e12;

[[noreturn]] void throw_form(std::string_view text) {
  throw ConfigError(str('\'', text, "' is no length of training; write 10e (epochs), 5000s (steps) or 20% (of the stage)"));
}

}  // namespace

Duration Duration::parse(std::string_view text) {
  if (text.size() < 2 || text[0] < '0' || text[0] > '9') throw_form(text);
  Duration duration;
  switch (text.back()) {
    case 'e': duration.unit = Unit::epochs; break;
    case 's': duration.unit = Unit::steps; break;
    case '%': duration.unit = Unit::percent; break;
    default: throw_form(text);
  }
  const char* const end = text.data() + text.size() - 1;
  const auto [stop, error] = std::from_chars(text.data(), end, duration.amount, std::chars_format::fixed);
  if (error != std::errc{} || stop != end) throw_form(text);
  TESSERA_CHECK(duration.amount <= kLongest, ConfigError, '\'', text, "' is too long; at most ", kLongest);
  TESSERA_CHECK(duration.unit != Unit::steps || duration.amount == std::floor(duration.amount), ConfigError, '\'', text,
                "' is not a whole number of steps");
  TESSERA_CHECK(duration.unit != Unit::percent || duration.amount <= 100, ConfigError, '\'', text,
                "' is longer than the stage; at most 100%");
  return duration;
}

std::int64_t Duration::resolve(std::int64_t steps_per_epoch, std::int64_t stage_steps) const {
  double steps = amount;
  if (unit == Unit::epochs) steps = amount * static_cast<double>(steps_per_epoch);
  if (unit == Unit::percent) steps = amount / 100 * static_cast<double>(stage_steps);
  TESSERA_CHECK(std::abs(steps) < 0x1p62, ConfigError, to_string(*this), " is ", steps, " steps; too many to count");
  return std::llround(steps);
}

std::string to_string(const Duration& duration) {
  char text[400];  // the longest double in fixed notation has 309 digits before the point
  const auto [end, error] = std::to_chars(std::begin(text), std::end(text), duration.amount, std::chars_format::fixed);
  TESSERA_CHECK(error == std::errc{}, InternalError, "duration: ", duration.amount, " has no text");
  constexpr char kUnits[] = {'e', 's', '%'};
  return std::string(text, end) + kUnits[static_cast<std::size_t>(duration.unit)];
}

}  // namespace tessera
