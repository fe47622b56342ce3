#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/config/value.h"
#include "core/support/error.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDepth = 64;

std::string quote(const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::type_error&) {
    throw IoError("to_json: text is not valid UTF-8");
  }
}

// std::to_chars gives the shortest text that reads back to the same bits. A whole number keeps ".0", so that it stays a real.
std::string real_text(double value) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  char text[32];
  std::string shortest(text, std::to_chars(std::begin(text), std::end(text), value).ptr);
  return shortest.find_first_of(".e") == std::string::npos ? shortest + ".0" : shortest;
}

class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  void write(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::null: text_ += "null"; break;
      case Value::Kind::boolean: text_ += value.as_bool() ? "true" : "false"; break;
      case Value::Kind::integer: text_ += std::to_string(value.as_int()); break;
      case Value::Kind::real: text_ += real_text(value.as_double()); break;
      case Value::Kind::string: text_ += quote(value.as_string()); break;
      case Value::Kind::list: write_items('[', value.as_list(), ']', [this](const Value& item) { write(item); }); break;
      case Value::Kind::map:
        write_items('{', value.as_map(), '}', [this](const Value::Entry& entry) {
          text_ += quote(entry.key) + (indent_ < 0 ? ":" : ": ");
          write(entry.value);
        });
        break;
    }
  }
  std::string take() { return std::move(text_); }

 private:
  template <class Items, class WriteItem>
  void write_items(char open, const Items& items, char close, const WriteItem& write_item) {
    text_ += open;
    ++depth_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) text_ += ',';
      new_line();
      write_item(items[i]);
    }
    --depth_;
    if (!items.empty()) new_line();
    text_ += close;
  }
  void new_line() {
    if (indent_ >= 0) text_.append(1, '\n').append(static_cast<std::size_t>(indent_ * depth_), ' ');
  }

  int indent_;
  int depth_ = 0;
  std::string text_;
};

// Builds Values from the parser's events, because the library's tree type silently drops repeated keys.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(std::string_view origin) : origin_(origin) {}

  bool null() override { return put({}); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) fail(str("integer ", value, " does not fit in 64 bits"));
    return put(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (text.find_first_of(".eE") == string_t::npos) fail(str("integer ", text, " does not fit in 64 bits"));
    return put(value);
  }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { fail("binary data"); }

  bool start_object(std::size_t) override { return open(Value::map()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Value::list()); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!open_.back().keys.insert(name).second) fail(str("key '", name, "' is repeated"));
    open_.back().key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string what = error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    fail(what.substr(std::min(what.size(), what.find("] ") + 2)));
  }
  Value take() { return std::move(root_); }

 private:
  struct Open {
    Value value;
    std::string key;  // key of the value that comes next
    std::unordered_set<std::string> keys = {};
  };

  [[noreturn]] void fail(const std::string& what) const { throw IoError(str(origin_, ": ", what)); }
  bool open(Value value) {
    if (open_.size() == kMaxDepth) fail(str("nested deeper than ", kMaxDepth));
    open_.push_back({std::move(value), {}});
    return true;
  }
  bool close() {
    Value value = std::move(open_.back().value);
    open_.pop_back();
    return put(std::move(value));
  }
  bool put(Value value) {
    value.with_mark({origin_, 0, 0});
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().value.is_list()) {
      open_.back().value.as_list().push_back(std::move(value));
    } else {
      open_.back().value.as_map().push_back({open_.back().key, {origin_, 0, 0}, std::move(value)});
    }
    return true;
  }

  std::string origin_;
  std::vector<Open> open_;
  Value root_;
};

}  // namespace

std::string to_json(const Value& value, int indent) {
  Writer writer(indent);
  writer.write(value);
  return writer.take();
}

Value parse_json(std::string_view text, std::string_view origin) {
  Builder builder(origin);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace tessera
