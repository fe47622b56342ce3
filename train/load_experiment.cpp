#include <utility>

#include "core/config/read.h"
#include "core/support/error.h"
#include "train/config/overrides.h"
#include "train/config/yaml.h"
#include "train/config_file.h"
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

// Checks the micro-batch against the batch, which is in another block. Equal shares keep one kernel shape for every micro-batch.
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

// `problems` starts with those of reading the file. Returns nothing if it is not empty at the end.
std::optional<Experiment> parse(Value root, DeviceIs device, std::vector<ConfigProblem>& problems) {
  const std::size_t from_yaml = problems.size();
  merge_stages(root, problems);
  Experiment experiment;
  read(root, experiment.config, "", problems);
  if (problems.size() == from_yaml) check_micro_batches(root, experiment.config, problems);
  check_device(root, experiment.config.device, experiment.config.precision, device, problems);
  problems = tidy(std::move(problems), from_yaml);
  if (!problems.empty()) return std::nullopt;
  experiment.marks = marks_of(root);
  experiment.resolved = write(experiment.config);
  return experiment;
}

// In the config that an older run stored, every model has these keys. A key that the model does not use is empty: `hidden: []`,
// `shortcut: ""`, `layers: null`. Today a model accepts only its own keys. An empty key means the same as an absent one.
void drop_unset_model_keys(Value& root) {
  Value* const model = root.is_map() ? root.find("model") : nullptr;
  if (model == nullptr || !model->is_map()) return;
  for (const char* key : {"hidden", "shortcut", "layers"}) {
    const Value* const value = model->find(key);
    if (value == nullptr) continue;
    const bool empty_list = value->is_list() && value->as_list().empty();
    const bool empty_text = value->is_string() && value->as_string().empty();
    if (value->is_null() || empty_list || empty_text) model->erase(key);
  }
}

}  // namespace

Experiment parse_experiment(Value root) {
  drop_unset_model_keys(root);
  std::vector<ConfigProblem> problems;
  std::optional<Experiment> experiment = parse(std::move(root), DeviceIs::named, problems);
  if (!experiment) throw_config_error(problems);
  return std::move(*experiment);
}

std::optional<Experiment> load_experiment(const std::string& path, std::span<const std::string> overrides,
                                          std::vector<ConfigProblem>& problems) {
  std::optional<Value> root = load_config_file(path, overrides, problems);
  if (!root) return std::nullopt;
  return parse(std::move(*root), DeviceIs::here, problems);
}

Experiment load_experiment(const std::string& path, std::span<const std::string> overrides) {
  std::vector<ConfigProblem> problems;
  std::optional<Experiment> experiment = load_experiment(path, overrides, problems);
  if (!experiment) throw_config_error(problems);
  return std::move(*experiment);
}

}  // namespace tessera
