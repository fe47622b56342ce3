#include "compress/timing/clock_figures.h"

#include <regex>

namespace tessera {

bool is_clock_column(std::string_view column) {
  return column.ends_with("_ms") || column.starts_with("speedup") || column == "network_share";
}

std::string without_times(std::string_view key, const std::string& choice) {
  return key.starts_with("keep.") ? choice.substr(0, choice.find(' ')) : choice;
}

std::string without_speeds(const std::string& text) {
  static const std::regex speed(R"(([0-9.e+-]+ -> [0-9.e+-]+ ms, )?[0-9.]+x \([0-9.]+-[0-9.]+\))");
  return std::regex_replace(text, speed, "SPEED");
}

}  // namespace tessera
