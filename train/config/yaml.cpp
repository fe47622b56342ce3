#include "train/config/yaml.h"

#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <sstream>
#include <system_error>

#include "core/support/error.h"
#include "train/config/utf8.h"
#include "train/config/yaml_builder.h"

namespace tessera {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

std::string read_text(const std::string& path) {
  const auto fail = [&path](int error) {
    throw IoError(str(path, ": cannot be read: ", std::generic_category().message(error)));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) fail(errno);
  std::string text(kMaxBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get())) fail(errno);
  return text;
}

// Offset of the first control character, or npos: C0 except tab and line ends, DEL, and C1 except NEL (UTF-8: C2 80 to C2 9F).
// YAML 1.2.2 (5.1) forbids them in files, and a terminal would obey them when a message quotes one.
std::size_t find_control(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) return i;
    if (c != 0xc2 || i + 1 == text.size()) continue;
    const auto next = static_cast<unsigned char>(text[i + 1]);
    if (0x80 <= next && next <= 0x9f && next != 0x85) return i;
  }
  return std::string_view::npos;
}

void check_bytes(std::string_view text, const std::string& origin) {
  TESSERA_CHECK(text.size() <= kMaxBytes, ConfigError, origin, ": is larger than 1 MiB; an experiment file is small");
  const std::size_t control = find_control(text);
  const std::size_t bad = std::min(find_invalid_utf8(text), control);
  if (bad >= text.size()) return;
  const std::string_view before = text.substr(0, bad);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t column = bad - (before.rfind('\n') + 1) + 1;
  const char* const what = text[bad] == '\0'       ? "a zero byte"
                           : bad == control ? "a control character"
                                                   : "bytes that are not UTF-8";
  throw ConfigError(str(origin, ':', line, ':', column, ": ", what, "; an experiment file is UTF-8 text"));
}

// A line that begins with a tab is the likeliest cause of a syntax error there. yaml-cpp does not name it.
std::string tab_advice(std::string_view text, const YAML::Mark& mark) {
  for (int line = 0; line < mark.line && !text.empty(); ++line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const std::string_view indent = text.substr(0, std::min(text.find_first_not_of(" \t"), text.size()));
  const bool tabs = indent.find('\t') != std::string_view::npos;
  return tabs ? "; the line is indented with a tab, which YAML does not take: use spaces" : "";
}

}  // namespace

Value load_yaml(const std::string& path) { return parse_yaml(read_text(path), path); }

Value load_yaml(const std::string& path, std::vector<ConfigProblem>& problems) {
  return parse_yaml(read_text(path), path, problems);
}

Value parse_yaml(std::string_view text, const std::string& origin) {
  std::vector<ConfigProblem> problems;
  Value root = parse_yaml(text, origin, problems);
  if (!problems.empty()) throw_config_error(problems);
  return root;
}

Value parse_yaml(std::string_view text, const std::string& origin, std::vector<ConfigProblem>& problems) {
  check_bytes(text, origin);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::istringstream stream{std::string(text)};
  detail::YamlBuilder builder(text, origin);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    if (error.msg.ends_with("flow not found") && builder.has_open()) builder.fail_unclosed();
    builder.fail(builder.mark_of(error.mark), error.msg + tab_advice(text, error.mark));
  }
  return builder.finish(problems);
}

}  // namespace tessera
