#include "core/nn/selector.h"

#include <algorithm>
#include <optional>
#include <regex>
#include <utility>

#include "core/config/suggest.h"
#include "core/support/error.h"

namespace tessera {

namespace {

constexpr std::string_view kRegexPrefix = "re:";

// Whether the class opening at pattern[begin] holds c, and the position after its ']'. A ']' right after '[' or '[!' is a member.
std::pair<bool, std::size_t> match_class(std::string_view pattern, std::size_t begin, char c) {
  std::size_t i = begin + 1;
  const bool negated = i < pattern.size() && pattern[i] == '!';
  if (negated) ++i;
  const std::size_t close = pattern.find(']', i + 1);
  TESSERA_CHECK(close != std::string_view::npos, ConfigError, "selector '", pattern, "': '[' at position ", begin + 1,
                " has no ']'");
  bool found = false;
  for (; i < close; ++i) {
    if (i + 2 < close && pattern[i + 1] == '-') {
      found |= pattern[i] <= c && c <= pattern[i + 2];
      i += 2;
    } else {
      found |= pattern[i] == c;
    }
  }
  return {found != negated, close + 1};
}

// The position after the pattern's element at p if that element matches c, otherwise nothing.
std::optional<std::size_t> step(std::string_view pattern, std::size_t p, char c) {
  if (p == pattern.size()) return std::nullopt;
  if (pattern[p] == '[') {
    const auto [holds, next] = match_class(pattern, p, c);
    return holds ? std::optional(next) : std::nullopt;
  }
  const bool takes = pattern[p] == '?' ? c != '.' : pattern[p] == c;
  return takes ? std::optional(p + 1) : std::nullopt;
}

// Backtracks to the last star only, which is enough because a star takes anything: at most |pattern| * |path| steps.
bool glob_matches(std::string_view pattern, std::string_view path) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::optional<std::size_t> star;
  std::size_t star_end = 0;  // the last star has matched the path up to here
  while (t < path.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_end = t;
    } else if (const auto next = step(pattern, p, path[t])) {
      p = *next;
      ++t;
    } else if (star) {
      p = *star + 1;
      t = ++star_end;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool regex_matches(std::string_view pattern, std::string_view path) {
  try {
    const std::regex expression(std::string(pattern.substr(kRegexPrefix.size())));
    return std::regex_match(path.begin(), path.end(), expression);
  } catch (const std::regex_error& error) {
    throw ConfigError(str("selector '", pattern, "': not a regular expression: ", error.what()));
  }
}

std::string nothing_matches(std::string_view pattern, std::span<const std::string> paths) {
  if (paths.empty()) return str("selector '", pattern, "' matches no layer; there is none to match");
  std::vector<std::string> nearest(paths.begin(), paths.end());
  std::stable_sort(nearest.begin(), nearest.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(pattern, a) < edit_distance(pattern, b);
  });
  std::string message = str("selector '", pattern, "' matches no layer; nearest:");
  for (std::size_t i = 0; i < std::min<std::size_t>(nearest.size(), 3); ++i) message += str(i == 0 ? " " : ", ", nearest[i]);
  return message;
}

}  // namespace

bool path_matches(std::string_view pattern, std::string_view path) {
  return pattern.starts_with(kRegexPrefix) ? regex_matches(pattern, path) : glob_matches(pattern, path);
}

std::vector<std::string> select(std::string_view pattern, std::span<const std::string> paths) {
  std::vector<std::string> matched;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(matched),
               [pattern](const std::string& path) { return path_matches(pattern, path); });
  if (matched.empty()) throw ConfigError(nothing_matches(pattern, paths));
  return matched;
}

std::vector<std::string> select(std::span<const std::string> patterns, std::span<const std::string> paths) {
  std::vector<bool> taken(paths.size(), false);
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (!path_matches(pattern, paths[i])) continue;
      taken[i] = true;
      any = true;
    }
    if (!any) throw ConfigError(nothing_matches(pattern, paths));
  }
  std::vector<std::string> matched;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (taken[i]) matched.push_back(paths[i]);
  }
  return matched;
}

bool is_selector(const Value& value) {
  if (!value.is_list()) return value.is_string();
  const Value::List& items = value.as_list();
  return !items.empty() && std::all_of(items.begin(), items.end(), [](const Value& item) { return item.is_string(); });
}

std::vector<std::string> selector_patterns(const Value& selector) {
  if (!selector.is_list()) return {selector.as_string()};
  std::vector<std::string> patterns;
  for (const Value& item : selector.as_list()) patterns.push_back(item.as_string());
  return patterns;
}

}  // namespace tessera
