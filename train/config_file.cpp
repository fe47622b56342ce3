#include "train/config_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <utility>

#include "core/device/precision.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/config/overrides.h"
#include "train/config/yaml.h"
#include "train/data/builtin.h"
#include "train/resolve_device.h"

namespace tessera {
namespace {

// "stages[3].optimizer.lr" -> "optimizer.lr"; other paths stay.
std::string path_in_stage(const std::string& path) {
  const std::size_t end = path.starts_with("stages[") ? path.find("].") : std::string::npos;
  return end == std::string::npos ? path : path.substr(end + 2);
}

void collect_marks(const Value& value, const std::string& path, Marks& marks) {
  if (!path.empty()) marks[path] = value.mark();
  if (value.is_map()) {
    for (const Value::Entry& entry : value.as_map()) collect_marks(entry.value, join(path, entry.key), marks);
  } else if (value.is_list()) {
    for (std::size_t i = 0; i < value.as_list().size(); ++i) collect_marks(value.as_list()[i], str(path, '[', i, ']'), marks);
  }
}

// "x.yaml:3:1: what" -> its mark and "what", if `file` is x.yaml. Other texts stay whole.
ConfigProblem split_place(std::string_view line, const std::string& file) {
  ConfigProblem problem{{}, "", std::string(line)};
  if (!line.starts_with(file + ":")) return problem;
  problem.mark.file = file;
  line.remove_prefix(file.size() + 1);
  for (int* number : {&problem.mark.line, &problem.mark.column}) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), *number);
    if (error != std::errc() || end == line.data() + line.size() || *end != ':') break;
    line.remove_prefix(static_cast<std::size_t>(end + 1 - line.data()));
  }
  problem.message = line.starts_with(' ') ? line.substr(1) : line;
  return problem;
}

// The text of an error that ended the reading has one line per problem, with its place in front.
void append_fatal(std::string_view text, const std::string& file, std::vector<ConfigProblem>& problems) {
  for (const std::string& line : split(text, '\n')) problems.push_back(split_place(line, file));
}

// Paths in a file are relative to it. They become absolute, because the resolved config outlives the working directory.
void make_absolute(Value& root, const std::filesystem::path& base) {
  if (!root.is_map()) return;
  const auto absolute = [&](std::string& file) { file = (base / file).lexically_normal().string(); };
  if (Value* const data = root.find("data")) for_each_data_file(*data, absolute);
  Value* const model = root.find("model");
  Value* const weights = model != nullptr && model->is_map() ? model->find("weights") : nullptr;
  if (weights != nullptr) change_file_name(*weights, absolute);
}

}  // namespace

std::vector<ConfigProblem> tidy(std::vector<ConfigProblem> problems, std::size_t from_yaml) {
  std::vector<ConfigProblem> unique;
  std::set<std::string> refused;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const std::string where = to_string(problems[i].mark);
    if (i < from_yaml) refused.insert(where);
    if (i >= from_yaml && refused.contains(where)) continue;
    if (seen.insert(str(where, ' ', path_in_stage(problems[i].path), ' ', problems[i].message)).second) {
      unique.push_back(problems[i]);
    }
  }
  std::stable_sort(unique.begin(), unique.end(), [](const ConfigProblem& a, const ConfigProblem& b) {
    return std::pair(a.mark.line, a.mark.column) < std::pair(b.mark.line, b.mark.column);
  });
  return unique;
}

void check_device(const Value& root, const std::string& device, const std::string& precision, DeviceIs wanted,
                  std::vector<ConfigProblem>& problems) {
  const char* key = "device";
  try {
    const Device found = wanted == DeviceIs::here ? resolve_device(device) : named_device(device);
    key = "precision";
    compute_dtype(precision, found);
  } catch (const ConfigError& error) {
    const Value* value = root.is_map() ? root.find(key) : nullptr;
    problems.push_back({value != nullptr ? value->mark() : Mark{}, key, error.what()});
  }
}

Marks marks_of(const Value& root) {
  Marks marks;
  collect_marks(root, "", marks);
  return marks;
}

ConfigProblem problem_at(const Marks& marks, const std::string& path, std::string message) {
  std::string place = path;
  while (!place.empty() && !marks.contains(place)) {
    const std::size_t cut = place.find_last_of(".[");
    place.resize(cut == std::string::npos ? 0 : cut);
  }
  return {place.empty() ? Mark{} : marks.at(place), path, std::move(message)};
}

std::optional<Value> load_config_file(const std::string& path, std::span<const std::string> overrides,
                                      std::vector<ConfigProblem>& problems) {
  Value root;
  std::string origin = path;
  try {
    root = load_yaml(path, problems);
    origin = "command line";
    for (const std::string& text : overrides) apply_override(root, text);
  } catch (const IoError& error) {  // a path that cannot be read is the user's mistake, not the run's failure
    append_fatal(error.what(), origin, problems);
    return std::nullopt;
  } catch (const ConfigError& error) {
    append_fatal(error.what(), origin, problems);
    return std::nullopt;
  }
  make_absolute(root, std::filesystem::absolute(path).parent_path());
  return root;
}

}  // namespace tessera
