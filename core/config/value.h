// A parsed configuration tree, independent of the file format it came from: experiment files (YAML), manifests (JSON) and
// module configs all become Values. Maps keep their order. Every node remembers where it stood, for error messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tessera {

// Position in a source: 1-based line and column; line 0 means "no position". `file` may also be "command line".
struct Mark {
  std::string file;
  int line = 0;
  int column = 0;
};
std::string to_string(const Mark& mark);  // "x.yaml:14:3", "command line", or "" when there is none

class Value {
 public:
  using List = std::vector<Value>;
  struct Entry;  // key, its mark, value
  using Map = std::vector<Entry>;
  enum class Kind { null, boolean, integer, real, string, list, map };

  Value() = default;  // null
  Value(bool value);
  Value(int value);
  Value(std::int64_t value);
  Value(double value);
  Value(const char* value);
  Value(std::string value);
  Value(std::string_view value);
  static Value list();
  static Value list(List items);
  static Value map();

  Kind kind() const noexcept { return static_cast<Kind>(data_.index()); }
  std::string_view kind_name() const noexcept;  // "null", "true or false", "an integer", "a number", "text", "a list", "a block"
  bool is_null() const noexcept { return kind() == Kind::null; }
  bool is_list() const noexcept { return kind() == Kind::list; }
  bool is_map() const noexcept { return kind() == Kind::map; }
  bool is_string() const noexcept { return kind() == Kind::string; }
  bool is_number() const noexcept { return kind() == Kind::integer || kind() == Kind::real; }

  // Throw ConfigError, with the mark, when the kind is another. as_double also takes integers.
  bool as_bool() const;
  std::int64_t as_int() const;
  double as_double() const;
  const std::string& as_string() const;
  const List& as_list() const;
  List& as_list();
  const Map& as_map() const;
  Map& as_map();

  // Maps: null when the key is absent.
  const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
  const Value& at(std::string_view key) const;  // throws ConfigError naming the key and the map's mark
  Value& set(std::string_view key, Value value);  // replaces in place or appends
  bool erase(std::string_view key);

  const Mark& mark() const noexcept { return mark_; }
  Value& with_mark(Mark mark) {
    mark_ = std::move(mark);
    return *this;
  }
  // Was written in quotes: a quoted "5" is text, never a number.
  bool quoted() const noexcept { return quoted_; }
  Value& with_quotes() {
    quoted_ = true;
    return *this;
  }

  friend bool operator==(const Value& a, const Value& b);  // content only: no marks, quotes, order of keys

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Map> data_;
  Mark mark_;
  bool quoted_ = false;
};

struct Value::Entry {
  std::string key;
  Mark mark;
  Value value;

  friend bool operator==(const Entry& a, const Entry& b) { return a.key == b.key && a.value == b.value; }
};

// Compact and indented JSON. Doubles are written in the shortest form that reads back to the same bits; NaN and Inf as the
// texts "nan", "inf", "-inf". parse_json refuses duplicate keys, trailing bytes and depth over 64: IoError naming `origin`.
std::string to_json(const Value& value, int indent = -1);
Value parse_json(std::string_view text, std::string_view origin);

}  // namespace tessera
