#include "train/config/overrides.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <variant>
#include <vector>

#include "core/config/suggest.h"
#include "core/support/error.h"
#include "train/config/yaml.h"

namespace tessera {
namespace {

constexpr const char* kOrigin = "command line";

using Step = std::variant<std::string, std::size_t>;  // a key or an index

[[noreturn]] void fail(std::string_view text, std::string_view what) {
  throw ConfigError(str(kOrigin, ": ", text, ": ", what));
}

void parse_indices(std::string_view part, std::string_view text, std::vector<Step>& steps) {
  while (!part.empty()) {
    std::size_t index = 0;
    const auto [stop, error] = std::from_chars(part.data() + 1, part.data() + part.size(), index);
    if (part[0] != '[' || error != std::errc{} || stop == part.data() + part.size() || *stop != ']') {
      fail(text, "an index is written [0] and ends its part of the path");
    }
    steps.emplace_back(index);
    part.remove_prefix(static_cast<std::size_t>(stop + 1 - part.data()));
  }
}

std::vector<Step> parse_path(std::string_view path, std::string_view text) {
  std::vector<Step> steps;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    const std::size_t bracket = std::min(part.find('['), part.size());
    if (bracket == 0) fail(text, "a part of the path is empty; write block.key=value or ~block.key");
    steps.emplace_back(std::string(part.substr(0, bracket)));
    parse_indices(part.substr(bracket), text, steps);
    begin = end + 1;
  }
  return steps;
}

// The first `count` steps of a path as text, for messages.
std::string written(const std::vector<Step>& steps, std::size_t count) {
  std::string path;
  for (std::size_t i = 0; i < count; ++i) {
    if (const std::size_t* index = std::get_if<std::size_t>(&steps[i])) {
      path += str('[', *index, ']');
    } else {
      path += (path.empty() ? "" : ".") + std::get<std::string>(steps[i]);
    }
  }
  return path.empty() ? "the experiment" : path;
}

Value& item(Value& list, const std::vector<Step>& steps, std::size_t at, std::string_view text) {
  const std::size_t index = std::get<std::size_t>(steps[at]);
  if (!list.is_list()) fail(text, str(written(steps, at), " is ", list.kind_name(), ", not a list"));
  const std::size_t size = list.as_list().size();
  if (index >= size) fail(text, str("index ", index, " is out of range; ", written(steps, at), " has ", size, " items"));
  return list.as_list()[index];
}

void check_block(const Value& block, const std::vector<Step>& steps, std::size_t at, std::string_view text) {
  if (!block.is_map()) fail(text, str(written(steps, at), " is ", block.kind_name(), ", not a block"));
}

void set(Value& root, const std::vector<Step>& steps, Value value, std::string_view text) {
  Value* at = &root;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (std::holds_alternative<std::size_t>(steps[i])) {
      at = &item(*at, steps, i, text);
      continue;
    }
    if (at->is_null()) *at = Value::map().with_mark({kOrigin});
    check_block(*at, steps, i, text);
    const std::string& key = std::get<std::string>(steps[i]);
    Value* next = at->find(key);
    at = next ? next : &at->set(key, Value().with_mark({kOrigin}));
  }
  *at = std::move(value);
}

void drop(Value& root, const std::vector<Step>& steps, std::string_view text) {
  Value* at = &root;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool last = i + 1 == steps.size();
    if (const std::size_t* index = std::get_if<std::size_t>(&steps[i])) {
      Value& next = item(*at, steps, i, text);
      if (last) at->as_list().erase(at->as_list().begin() + static_cast<std::ptrdiff_t>(*index));
      at = &next;
      continue;
    }
    check_block(*at, steps, i, text);
    const std::string& key = std::get<std::string>(steps[i]);
    Value* next = at->find(key);
    if (!next) {
      std::vector<std::string_view> keys;
      for (const Value::Entry& entry : at->as_map()) keys.push_back(entry.key);
      const auto near = nearest_names(key, keys, 1);
      fail(text, str("there is no ", written(steps, i + 1), near.empty() ? "" : str("; did you mean '", near[0], "'?")));
    }
    if (last) at->erase(key);
    at = next;
  }
}

// Replaces the positions inside an override, because they mean nothing to the reader of a message.
void mark_command_line(Value& value) {
  value.with_mark({kOrigin});
  if (value.is_list()) {
    for (Value& each : value.as_list()) mark_command_line(each);
  } else if (value.is_map()) {
    for (Value::Entry& entry : value.as_map()) {
      entry.mark = {kOrigin};
      mark_command_line(entry.value);
    }
  }
}

}  // namespace

void apply_override(Value& root, std::string_view text) {
  if (text.starts_with('~')) return drop(root, parse_path(text.substr(1), text), text);
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) fail(text, "write block.key=value to set a key or ~block.key to drop one");
  const std::string_view right = text.substr(equals + 1);
  const bool blank = right.find_first_not_of(" \t") == std::string_view::npos;
  if (blank) fail(text, "there is no value after '='; write null, \"\" or ~key");
  const std::vector<Step> steps = parse_path(text.substr(0, equals), text);
  Value value = parse_yaml(right, str(kOrigin, ": ", text.substr(0, equals)));
  mark_command_line(value);
  set(root, steps, std::move(value), text);
}

Value merge(const Value& base, const Value& over) {
  if (!base.is_map() || !over.is_map()) return over;
  const Value* below = base.find("name");
  const Value* above = over.find("name");
  if (above && (!below || !(*above == *below))) return over;
  Value merged = base;
  for (const Value::Entry& entry : over.as_map()) {
    Value::Map& entries = merged.as_map();
    const auto same_key = [&entry](const Value::Entry& other) { return other.key == entry.key; };
    const auto present = std::find_if(entries.begin(), entries.end(), same_key);
    if (present == entries.end()) {
      entries.push_back(entry);
    } else {
      present->mark = entry.mark;
      present->value = merge(present->value, entry.value);
    }
  }
  return merged;
}

}  // namespace tessera
