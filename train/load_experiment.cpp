#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <utility>

#include "core/config/read.h"
#include "core/device/precision.h"
#include "core/support/error.h"
#include "train/config/overrides.h"
#include "train/config/yaml.h"
#include "train/experiment.h"

namespace tessera {
namespace {

std::size_t count_values(const Value& value) {
  std::size_t count = 1;
  if (value.is_list()) {
    for (const Value& item : value.as_list()) count += count_values(item);
  } else if (value.is_map()) {
    for (const Value::Entry& entry : value.as_map()) count += count_values(entry.value);
  }
  return count;
}

// Each stage receives the top-level training blocks under its own keys.
void merge_stages(Value& root, std::vector<ConfigProblem>& problems) {
  Value* stages = root.is_map() ? root.find("stages") : nullptr;
  if (stages == nullptr || !stages->is_list()) return;
  std::size_t inherited = 0;
  for (const std::string_view key : training_keys()) {
    if (const Value* base = root.find(key)) inherited += count_values(*base);
  }
  if (inherited * stages->as_list().size() > kMaxYamlNodes) {
    problems.push_back(
        {stages->mark(), "stages",
         str(stages->as_list().size(), " stages inherit ", inherited, " values each; together at most ", kMaxYamlNodes)});
    return;
  }
  for (Value& stage : stages->as_list()) {
    if (!stage.is_map()) continue;
    for (const std::string_view key : training_keys()) {
      const Value* base = root.find(key);
      if (base == nullptr) continue;
      const Value* own = stage.find(key);
      stage.set(key, own == nullptr ? *base : merge(*base, *own));
    }
  }
}

// "stages[3].optimizer.lr" -> "optimizer.lr"; other paths stay.
std::string path_in_stage(const std::string& path) {
  const std::size_t end = path.starts_with("stages[") ? path.find("].") : std::string::npos;
  return end == std::string::npos ? path : path.substr(end + 2);
}

// What a user reads: in the order of the file, and once. A fault of a top-level block shows again in every stage that inherits
// it, and one that the YAML reader refused shows again as a value of the wrong kind.
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

// A rule between blocks that know nothing of each other. Equal shares keep one kernel shape for every micro-batch.
void check_micro_batch(const Value& block, const TrainingConfig& training, std::int64_t batch, const std::string& path,
                       std::vector<ConfigProblem>& problems) {
  const std::int64_t micro = training.micro_batch.value_or(batch);
  if (batch % micro == 0) return;
  problems.push_back(
      {block.at("micro_batch").mark(), path + "micro_batch", str("is ", micro, "; must divide data.batch, which is ", batch)});
}

void check_micro_batches(const Value& root, const ExperimentConfig& config, std::vector<ConfigProblem>& problems) {
  check_micro_batch(root, config.training, config.data.batch, "", problems);
  for (std::size_t i = 0; i < config.stages.size(); ++i) {
    const Value& stage = root.at("stages").as_list()[i];
    check_micro_batch(stage, config.stages[i].training, config.data.batch, str("stages[", i, "]."), problems);
  }
}

// A stored config may name a device that only another machine has; whoever computes with it resolves the device then.
enum class DeviceIs { named, here };

void check_device(const Value& root, const ExperimentConfig& config, DeviceIs wanted, std::vector<ConfigProblem>& problems) {
  const char* key = "device";
  try {
    const Device device = wanted == DeviceIs::here ? resolve_device(config.device) : named_device(config.device);
    key = "precision";
    compute_dtype(config.precision, device);
  } catch (const ConfigError& error) {
    const Value* value = root.is_map() ? root.find(key) : nullptr;
    problems.push_back({value != nullptr ? value->mark() : Mark{}, key, error.what()});
  }
}

// Positions of all blocks and keys, for problems that show only once the network is built.
void collect_marks(const Value& value, const std::string& path, std::map<std::string, Mark>& marks) {
  if (!path.empty()) marks[path] = value.mark();
  if (value.is_map()) {
    for (const Value::Entry& entry : value.as_map())
      collect_marks(entry.value, path.empty() ? entry.key : path + "." + entry.key, marks);
  } else if (value.is_list()) {
    for (std::size_t i = 0; i < value.as_list().size(); ++i) collect_marks(value.as_list()[i], str(path, '[', i, ']'), marks);
  }
}

// `problems` come from reading the file. Nothing when there are any in the end.
std::optional<Experiment> parse(Value root, DeviceIs device, std::vector<ConfigProblem>& problems) {
  const std::size_t from_yaml = problems.size();
  merge_stages(root, problems);
  Experiment experiment;
  read(root, experiment.config, "", problems);
  if (problems.size() == from_yaml) check_micro_batches(root, experiment.config, problems);
  check_device(root, experiment.config, device, problems);
  problems = tidy(std::move(problems), from_yaml);
  if (!problems.empty()) return std::nullopt;
  collect_marks(root, "", experiment.marks);
  experiment.resolved = write(experiment.config);
  return experiment;
}

// "x.yaml:3:1: what" -> its mark and what, for x.yaml; other texts stay whole.
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

// What ended the reading for good says its places in words, a line each.
void append_fatal(std::string_view text, const std::string& file, std::vector<ConfigProblem>& problems) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    problems.push_back(split_place(text.substr(begin, end - begin), file));
    begin = end + 1;
  }
}

// Paths in a file are relative to it; the resolved config outlives the working directory.
void make_absolute(Value& root, std::string_view block, std::string_view key, const std::filesystem::path& base) {
  Value* found = root.is_map() ? root.find(block) : nullptr;
  Value* value = found != nullptr && found->is_map() ? found->find(key) : nullptr;
  if (value == nullptr || !value->is_string() || value->as_string().empty()) return;
  const Mark mark = value->mark();
  *value = Value((base / value->as_string()).lexically_normal().string()).with_mark(mark);
}

}  // namespace

Experiment parse_experiment(Value root) {
  std::vector<ConfigProblem> problems;
  std::optional<Experiment> experiment = parse(std::move(root), DeviceIs::named, problems);
  if (!experiment) throw_config_error(problems);
  return std::move(*experiment);
}

std::optional<Experiment> load_experiment(const std::string& path, std::span<const std::string> overrides,
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
  const std::filesystem::path base = std::filesystem::absolute(path).parent_path();
  make_absolute(root, "data", "root", base);
  make_absolute(root, "model", "weights", base);
  return parse(std::move(root), DeviceIs::here, problems);
}

Experiment load_experiment(const std::string& path, std::span<const std::string> overrides) {
  std::vector<ConfigProblem> problems;
  std::optional<Experiment> experiment = load_experiment(path, overrides, problems);
  if (!experiment) throw_config_error(problems);
  return std::move(*experiment);
}

}  // namespace tessera
