#include "train/config/scalar.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "core/support/error.h"

namespace tessera {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Removes leading digits from `text` and returns how many there were.
std::size_t take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto count = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(count);
  return count;
}

struct NumberForm {
  bool is_number = false;
  bool is_integer = false;
  std::size_t whole_digits = 0;
};

// [0-9]+ is an integer. A point or an exponent makes the number a real. `text` has no sign.
NumberForm number_form(std::string_view text) {
  NumberForm form{.is_integer = true};
  form.whole_digits = take_digits(text);
  std::size_t digits = form.whole_digits;
  if (text.starts_with('.')) {
    form.is_integer = false;
    text.remove_prefix(1);
    digits += take_digits(text);
  }
  if (digits == 0) return {};
  if (text.starts_with('e') || text.starts_with('E')) {
    form.is_integer = false;
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (take_digits(text) == 0) return {};
  }
  form.is_number = text.empty();
  return form;
}

void refuse_other_spellings(std::string_view text, std::string_view magnitude) {
  const std::string lower = lower_case(text);
  for (const std::string_view word : {"yes", "no", "on", "off", "true", "false"}) {
    TESSERA_CHECK(lower != word, ConfigError, '\'', text, "' is neither text nor a truth value; write ",
                  word == "yes" || word == "on" || word == "true" ? "true" : "false", ", or quote it: '", text, '\'');
  }
  const std::string size = lower_case(magnitude);
  TESSERA_CHECK(size != ".inf" && size != ".nan", ConfigError, '\'', text, "' is not a finite number; quote it if it is text");
  const bool based = size.size() > 2 && size[0] == '0' && (size[1] == 'x' || size[1] == 'o' || size[1] == 'b') &&
                     size.find_first_not_of("0123456789abcdef", 2) == std::string::npos;
  TESSERA_CHECK(!based, ConfigError, '\'', text, "' is not decimal; write the decimal number, or quote it if it is text");
}

}  // namespace

Value resolve_plain_scalar(std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return {};
  const std::string_view magnitude = text.substr(text[0] == '-' || text[0] == '+' ? 1 : 0);
  refuse_other_spellings(text, magnitude);
  const NumberForm form = number_form(magnitude);
  if (!form.is_number) return text;
  if (form.whole_digits > 1 && magnitude[0] == '0') {
    const std::size_t first = std::min(magnitude.find_first_not_of('0'), form.whole_digits - 1);
    const std::string decimal = str(text[0] == '-' ? "-" : "", magnitude.substr(first));
    throw ConfigError(str('\'', text, "' has a leading zero; write ", decimal, " for the number or '", text,
                          "' in quotes for the text"));
  }
  const char* const begin = text.data() + (text[0] == '+');
  const char* const end = text.data() + text.size();
  std::int64_t integer = 0;
  double real = 0;
  const std::errc error = form.is_integer ? std::from_chars(begin, end, integer).ec : std::from_chars(begin, end, real).ec;
  TESSERA_CHECK(error == std::errc{}, ConfigError, text, " does not fit in ", form.is_integer ? "a 64-bit integer" : "a double");
  return form.is_integer ? Value(integer) : Value(real);
}

std::string expand_environment(std::string_view text) {
  std::string expanded;
  while (!text.empty()) {
    if (text.starts_with("$${")) {
      expanded += "${";
      text.remove_prefix(3);
    } else if (text.starts_with("${")) {
      const std::string_view name = text.substr(2, std::min(text.find('}'), text.size()) - 2);
      const bool named = !name.empty() && is_name_start(name[0]) &&
                         std::all_of(name.begin(), name.end(), [](char c) { return is_name_start(c) || is_digit(c); });
      TESSERA_CHECK(named && name.size() + 2 < text.size(), ConfigError,
                    "'${' without a variable name and '}'; write $${ for the text ${");
      const char* const value = std::getenv(std::string(name).c_str());
      TESSERA_CHECK(value, ConfigError, "environment variable ", name, " is not set");
      expanded += value;
      text.remove_prefix(name.size() + 3);
    } else {
      expanded += text[0];
      text.remove_prefix(1);
    }
  }
  return expanded;
}

}  // namespace tessera
