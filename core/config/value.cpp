#include "core/config/value.h"

#include <algorithm>

#include "core/support/error.h"

namespace tessera {
namespace {

[[noreturn]] void throw_kind(const Value& value, std::string_view expected) {
  const std::string where = to_string(value.mark());
  throw ConfigError(str(where, where.empty() ? "" : ": ", "expected ", expected, ", found ", value.kind_name()));
}

}  // namespace

std::string to_string(const Mark& mark) { return mark.line > 0 ? str(mark.file, ':', mark.line, ':', mark.column) : mark.file; }

// Defined here, and list() has no default argument: in the class both need the destructor of Map, where Entry is incomplete.
Value::Value(bool value) : data_(value) {}
Value::Value(int value) : data_(std::int64_t{value}) {}
Value::Value(std::int64_t value) : data_(value) {}
Value::Value(double value) : data_(value) {}
Value::Value(const char* value) : data_(std::string(value)) {}
Value::Value(std::string value) : data_(std::move(value)) {}
Value::Value(std::string_view value) : data_(std::string(value)) {}

Value Value::list() { return list(List{}); }

Value Value::list(List items) {
  Value value;
  value.data_ = std::move(items);
  return value;
}

Value Value::map() {
  Value value;
  value.data_ = Map{};
  return value;
}

std::string_view Value::kind_name() const noexcept {
  switch (kind()) {
    case Kind::null: return "null";
    case Kind::boolean: return "true or false";
    case Kind::integer: return "an integer";
    case Kind::real: return "a number";
    case Kind::string: return "text";
    case Kind::list: return "a list";
    case Kind::map: return "a block";
  }
  return "nothing";
}

bool Value::as_bool() const {
  if (const bool* value = std::get_if<bool>(&data_)) return *value;
  throw_kind(*this, "true or false");
}

std::int64_t Value::as_int() const {
  if (const std::int64_t* value = std::get_if<std::int64_t>(&data_)) return *value;
  throw_kind(*this, "an integer");
}

double Value::as_double() const {
  if (const double* value = std::get_if<double>(&data_)) return *value;
  if (const std::int64_t* value = std::get_if<std::int64_t>(&data_)) return static_cast<double>(*value);
  throw_kind(*this, "a number");
}

const std::string& Value::as_string() const {
  if (const std::string* value = std::get_if<std::string>(&data_)) return *value;
  throw_kind(*this, "text");
}

const Value::List& Value::as_list() const {
  if (const List* value = std::get_if<List>(&data_)) return *value;
  throw_kind(*this, "a list");
}

Value::List& Value::as_list() { return const_cast<List&>(std::as_const(*this).as_list()); }

const Value::Map& Value::as_map() const {
  if (const Map* value = std::get_if<Map>(&data_)) return *value;
  throw_kind(*this, "a block");
}

Value::Map& Value::as_map() { return const_cast<Map&>(std::as_const(*this).as_map()); }

const Value* Value::find(std::string_view key) const {
  for (const Entry& entry : as_map()) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Value* Value::find(std::string_view key) { return const_cast<Value*>(std::as_const(*this).find(key)); }

const Value& Value::at(std::string_view key) const {
  if (const Value* value = find(key)) return *value;
  const std::string where = to_string(mark_);
  throw ConfigError(str(where, where.empty() ? "" : ": ", "required key '", key, "' is missing"));
}

Value& Value::set(std::string_view key, Value value) {
  if (Value* present = find(key)) return *present = std::move(value);
  Mark mark = value.mark();
  as_map().push_back({std::string(key), std::move(mark), std::move(value)});
  return as_map().back().value;
}

bool Value::erase(std::string_view key) {
  return std::erase_if(as_map(), [key](const Entry& entry) { return entry.key == key; }) > 0;
}

bool operator==(const Value& a, const Value& b) {
  if (!a.is_map() || !b.is_map()) return a.data_ == b.data_;
  const auto found_in_b = [&b](const Value::Entry& entry) {
    const Value* other = b.find(entry.key);
    return other && *other == entry.value;
  };
  return a.as_map().size() == b.as_map().size() && std::all_of(a.as_map().begin(), a.as_map().end(), found_in_b);
}

}  // namespace tessera
