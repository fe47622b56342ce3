#include "core/config/read_scalar.h"

#include <algorithm>
#include <cmath>

#include "core/config/range_text.h"
#include "core/config/suggest.h"
#include "core/support/error.h"

namespace tessera::detail {
namespace {

// The text of what the user wrote, for "expected ..., found ...".
std::string shown(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::boolean: return value.as_bool() ? "true" : "false";
    case Value::Kind::integer:
    case Value::Kind::real: return to_json(value);
    case Value::Kind::string: return str("text '", value.as_string(), '\'');
    default: return std::string(value.kind_name());
  }
}

}  // namespace

void ScalarReader::report(const Value& value, std::string path, std::string message) {
  problems_.push_back({value.mark(), std::move(path), std::move(message)});
}

bool ScalarReader::mismatch(const Value& value, std::string path, std::string_view expected, std::string_view advice) {
  report(value, std::move(path), str("expected ", expected, ", found ", shown(value), advice.empty() ? "" : "; ", advice));
  return false;
}

bool ScalarReader::read(const Value& given, const std::string& path, bool& value, const FieldSpec&) {
  if (given.kind() != Value::Kind::boolean) return mismatch(given, path, "true or false");
  value = given.as_bool();
  return true;
}

bool ScalarReader::read(const Value& given, const std::string& path, std::int64_t& value, const FieldSpec& spec) {
  if (given.kind() != Value::Kind::integer) {
    return mismatch(given, path, "an integer", given.quoted() ? "a number takes no quotes" : "");
  }
  return in_range(given, path, given.as_double(), spec) && (value = given.as_int(), true);
}

bool ScalarReader::read(const Value& given, const std::string& path, double& value, const FieldSpec& spec) {
  if (!given.is_number()) return mismatch(given, path, "a number", given.quoted() ? "a number takes no quotes" : "");
  if (!std::isfinite(given.as_double())) return mismatch(given, path, "a finite number");
  return in_range(given, path, given.as_double(), spec) && (value = given.as_double(), true);
}

bool ScalarReader::read(const Value& given, const std::string& path, std::string& value, const FieldSpec& spec) {
  if (!given.is_string()) return mismatch(given, path, "text", given.is_number() ? "write it in quotes" : "");
  const std::string& text = given.as_string();
  if (spec.choices.empty() || std::find(spec.choices.begin(), spec.choices.end(), text) != spec.choices.end()) {
    value = text;
    return true;
  }
  std::string message = str('\'', text, "' is not a choice");
  if (const auto near = nearest_names(text, spec.choices, 1); !near.empty()) message += str("; did you mean '", near[0], "'?");
  message += "; choices:";
  for (const std::string_view choice : spec.choices) message += str(' ', choice);
  report(given, path, std::move(message));
  return false;
}

bool ScalarReader::read(const Value& given, const std::string& path, Duration& value, const FieldSpec& spec) {
  if (!given.is_string()) return mismatch(given, path, "a length of training", "write 10e, 5000s or 20%");
  try {
    const Duration duration = Duration::parse(given.as_string());
    return in_range(given, path, duration.amount, spec) && (value = duration, true);
  } catch (const ConfigError& error) {
    report(given, path, error.what());
    return false;
  }
}

bool ScalarReader::in_range(const Value& given, const std::string& path, double number, const FieldSpec& spec) {
  const Range& range = spec.range;
  const bool above = range.open_min ? number > range.min : number >= range.min;
  const bool below = range.open_max ? number < range.max : number <= range.max;
  if (above && below) return true;
  const std::string text = given.is_string() ? given.as_string() : to_json(given);
  report(given, path, str("is ", text, "; must be ", range_text(range)));
  return false;
}

}  // namespace tessera::detail
