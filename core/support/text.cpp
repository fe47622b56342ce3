#include "core/support/text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "core/support/error.h"

namespace tessera {
namespace {

class CsvReader {
 public:
  CsvReader(std::string_view text, std::string_view origin) : text_(text), origin_(origin) {}

  std::vector<std::vector<std::string>> rows() {
    std::vector<std::vector<std::string>> rows;
    while (at_ < text_.size()) {
      std::vector<std::string>& row = rows.emplace_back();
      do {
        row.push_back(field());
      } while (take(','));
      end_line();
    }
    return rows;
  }

 private:
  bool take(char wanted) {
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  std::string field() {
    if (take('"')) return quoted_field();
    const std::size_t end = std::min(text_.find_first_of(",\"\r\n", at_), text_.size());
    std::string text(text_.substr(at_, end - at_));
    at_ = end;
    return text;
  }

  std::string quoted_field() {
    const std::size_t begin = line_;
    std::string text;
    for (;;) {
      TESSERA_CHECK(at_ < text_.size(), IoError, origin_, ":", begin, ": a quote is not closed");
      const char c = text_[at_++];
      if (c == '"' && !take('"')) return text;
      line_ += c == '\n' ? 1 : 0;
      text += c;
    }
  }

  void end_line() {
    take('\r');
    const bool ended = take('\n') || at_ == text_.size();
    TESSERA_CHECK(ended, IoError, origin_, ":", line_, ": a field must end at a comma or at the line's end");
    ++line_;
  }

  std::string_view text_;
  std::string_view origin_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace

std::string percent(double fraction) { return formatted("%.2f %%", 100.0 * fraction); }

std::string formatted(const char* format, double value) {
  const int length = std::snprintf(nullptr, 0, format, value);
  std::string text(static_cast<std::size_t>(length) + 1, '\0');
  std::snprintf(text.data(), text.size(), format, value);
  text.pop_back();
  return text;
}

std::string shortest(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string with_article(std::string_view noun) {
  const bool vowel = !noun.empty() && std::string_view("aeiou").find(noun.front()) != std::string_view::npos;
  return str(vowel ? "an " : "a ", noun);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,=/:+%@";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + '\'';
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::vector<std::vector<std::string>> parse_csv(std::string_view text, std::string_view origin) {
  return CsvReader(text, origin).rows();
}

std::size_t text_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

std::string aligned(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
  std::vector<std::size_t> widths(right.size(), 0);
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], text_width(row[i]));
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - text_width(row[i]), ' ');
      line += (i > 0 ? "  " : "") + (right[i] ? pad + row[i] : row[i] + pad);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace tessera
