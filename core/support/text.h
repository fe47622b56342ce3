// Numbers and fields as text, for tables that people and programs read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// One number by a printf format for double: formatted("%.2f", 0.125).
std::string formatted(const char* format, double value);

std::string percent(double fraction);  // "93.28 %"

// The shortest form that reads back to the same double.
std::string shortest(double value);

std::string with_article(std::string_view noun);  // "a linear", "an embedding"

// The parts of a text between separators, empty ones too: "1,,2" has three.
std::vector<std::string> split(std::string_view text, char separator);

// For a shell to read back as one word: in quotes where it needs them.
std::string shell_word(std::string_view text);

// A CSV field by RFC 4180: one with a comma, a quote or a line break stands in quotes, its quotes doubled.
std::string csv_field(std::string_view text);

// Rows of such fields; lines end in "\n" or "\r\n". Throws IoError naming `origin` and the line on a quote that is not closed or
// stands inside a field without quotes, and on text behind a closing one.
std::vector<std::vector<std::string>> parse_csv(std::string_view text, std::string_view origin);

// Columns on a terminal that UTF-8 text takes: its code points.
std::size_t text_width(std::string_view text);

// Rows of cells, two spaces between columns, each column as wide as its widest cell; right[i] aligns column i to the right. Rows
// may be shorter than `right`. No line ends in spaces.
std::string aligned(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right);

}  // namespace tessera
