#include "train/config/yaml_writer.h"

#include <algorithm>
#include <cmath>

#include "core/support/error.h"
#include "train/config/scalar.h"

namespace tessera {
namespace {

bool is_plain_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./%+*$ ").find(c) != std::string_view::npos;
}

// Text of letters, digits and a few signs that start nothing in YAML and that, unquoted, resolves to a string.
bool is_plain_text(const std::string& text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_plain_character)) return false;
  const bool starts_plainly = std::string_view("-*%+ .$").find(text[0]) == std::string_view::npos;
  if (!starts_plainly || text.back() == ' ') return false;
  try {
    return resolve_plain_scalar(text).is_string();
  } catch (const ConfigError&) {
    return false;
  }
}

std::string escaped_code(unsigned code) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  return str("\\u00", kDigits[code / 16], kDigits[code % 16]);
}

// JSON's quoting is valid in YAML too. DEL and C1, which JSON leaves as they are, are escaped: files here must not hold them.
std::string in_quotes(const std::string& text) {
  if (is_plain_text(text)) return text;
  std::string escaped;
  const std::string json = to_json(text);
  for (std::size_t i = 0; i < json.size(); ++i) {
    const auto c = static_cast<unsigned char>(json[i]);
    const auto next = static_cast<unsigned char>(i + 1 < json.size() ? json[i + 1] : '\0');
    const bool c1 = c == 0xc2 && 0x80 <= next && next <= 0x9f;
    if (c != 0x7f && !c1) {
      escaped += json[i];
      continue;
    }
    escaped += escaped_code(c1 ? next : c);
    i += c1 ? 1 : 0;
  }
  return escaped;
}

std::string value_text(const std::string& text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "${") == 0) escaped += '$';
    escaped += text[i];
  }
  return in_quotes(escaped);
}

std::string key_text(const std::string& key) {
  TESSERA_CHECK(!key.empty(), ConfigError, "to_yaml: a key is empty");
  return in_quotes(key);
}

bool is_collection(const Value& value) { return value.is_list() || value.is_map(); }
bool is_empty(const Value& value) { return value.is_list() ? value.as_list().empty() : value.as_map().empty(); }

std::string scalar_text(const Value& value) {
  if (value.is_string()) return value_text(value.as_string());
  if (value.kind() == Value::Kind::real) {
    TESSERA_CHECK(std::isfinite(value.as_double()), ConfigError, "to_yaml: ", value.as_double(), " is not finite");
  }
  return to_json(value);
}

// Whether the value fits on the line of its key: scalars, empty collections and lists of scalars do.
bool is_inline(const Value& value) {
  if (!is_collection(value) || is_empty(value)) return true;
  return value.is_list() && std::none_of(value.as_list().begin(), value.as_list().end(), is_collection);
}

std::string inline_text(const Value& value) {
  if (value.is_map()) return "{}";
  if (!value.is_list()) return scalar_text(value);
  std::string text = "[";
  for (const Value& item : value.as_list()) text += (text.size() > 1 ? ", " : "") + scalar_text(item);
  return text + ']';
}

// Writes the lines of a non-empty collection. The first line continues the current one, after the indent or after "- ".
void write_lines(const Value& value, int indent, std::string& text) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  bool first = true;
  const auto start_line = [&] {
    if (!first) text += margin;
    first = false;
  };
  if (value.is_list()) {
    for (const Value& item : value.as_list()) {
      start_line();
      text += "- ";
      if (is_inline(item)) {
        text += inline_text(item) + '\n';
      } else {
        write_lines(item, indent + 2, text);
      }
    }
    return;
  }
  for (const Value::Entry& entry : value.as_map()) {
    start_line();
    text += key_text(entry.key) + ':';
    if (is_inline(entry.value)) {
      text += ' ' + inline_text(entry.value) + '\n';
    } else {
      text += '\n' + margin + "  ";
      write_lines(entry.value, indent + 2, text);
    }
  }
}

}  // namespace

std::string to_yaml(const Value& value) {
  if (is_inline(value)) return inline_text(value) + '\n';
  std::string text;
  write_lines(value, 0, text);
  return text;
}

}  // namespace tessera
