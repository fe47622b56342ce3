#include "train/reproduce/cell.h"

#include <utility>

#include "core/support/hash.h"
#include "core/support/text.h"
#include "train/config/yaml_writer.h"
#include "train/run/environment.h"
#include "train/run/run_state.h"
#include "train/run/stage_passes.h"

namespace tessera {
namespace {

// "-lr0.05" for optimizer.lr = 0.05.
std::string value_text(const TableFile& table, std::optional<double> tuned) {
  if (!tuned) return "";
  const std::string& key = table.tune->key;
  return str('-', key.substr(key.find_last_of('.') + 1), shortest(*tuned));
}

std::vector<std::string> overrides_of(const TableFile& table, const ArmConfig& arm, std::int64_t seed,
                                      std::optional<double> tuned) {
  std::vector<std::string> overrides = arm.set;
  if (tuned) overrides.push_back(str(table.tune->key, '=', shortest(*tuned)));
  overrides.push_back(str("seed=", seed));
  overrides.push_back(str("name=", arm.name, value_text(table, tuned), "-seed", seed));
  return overrides;
}

std::string where_decided(const ExperimentConfig& config, const Value& environment) {
  const std::string device = computing_device(environment);
  return config.device == Device::cpu().name() ? str(device, ", ", config.threads.compute, " threads") : device;
}

// Unless timing decides which layers stay compressed, `keep_for` only says at which batch and phase they are timed.
void erase_keep_for(Value& stage) {
  for (const char* block : {"factorise", "admm", "shrink", "sparsify"}) {
    if (Value* const found = stage.find(block)) found->erase("keep_for");
  }
}

std::string key_of(const ExperimentConfig& config) {
  Value settings = settings_for_figures(config, describe_environment(config));
  settings.erase("seed");
  constexpr std::size_t kDigits = 16;
  return xxh3_128(to_json(settings)).substr(0, kDigits);
}

}  // namespace

Value settings_for_figures(const ExperimentConfig& config, const Value& environment) {
  Value settings = write(config);
  for (const char* key : {"name", "device", "threads", "checkpoint", "report", "log_every"}) settings.erase(key);
  for (const std::string_view key : training_keys()) settings.erase(key);  // each stage has its own
  settings.find("data")->erase("root");
  for (std::size_t i = 0; i < config.stages.size(); ++i) {
    Value& stage = settings.find("stages")->as_list()[i];
    if (clock_decides(config.stages[i])) {
      stage.set("decided_on", where_decided(config, environment));
    } else {
      erase_keep_for(stage);
    }
  }
  return settings;
}

std::optional<Cell> make_cell(const TableFile& table, const ArmConfig& arm, std::int64_t seed, std::optional<double> tuned,
                              std::vector<ConfigProblem>& problems) {
  std::optional<Experiment> experiment = load_experiment(arm.experiment, overrides_of(table, arm, seed, tuned), problems);
  if (!experiment) return std::nullopt;
  std::string text = to_yaml(experiment->resolved);
  settle_for_run(experiment->config);
  experiment->resolved = write(experiment->config);
  std::string key = key_of(experiment->config);
  return Cell{arm.name, seed, tuned, std::move(*experiment), std::move(text), std::move(key)};
}

Cell make_cell(const TableFile& table, const ArmConfig& arm, std::int64_t seed, std::optional<double> tuned) {
  std::vector<ConfigProblem> problems;
  std::optional<Cell> cell = make_cell(table, arm, seed, tuned, problems);
  if (!cell) throw_config_error(problems);
  return std::move(*cell);
}

std::size_t shared_stages(const Value& settings, const Value& other) {
  const auto rest = [](Value value) {
    value.erase("stages");
    return value;
  };
  if (rest(settings) != rest(other)) return 0;
  const Value::List& stages = settings.at("stages").as_list();
  const Value::List& others = other.at("stages").as_list();
  std::size_t count = 0;
  while (count < std::min(stages.size(), others.size()) && stages[count] == others[count]) ++count;
  return count;
}

}  // namespace tessera
