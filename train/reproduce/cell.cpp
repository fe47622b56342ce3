#include "train/reproduce/cell.h"

#include <utility>

#include "core/support/hash.h"
#include "core/support/text.h"

namespace tessera {
namespace {

// "-lr0.05" for optimizer.lr.
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

std::string key_of(const Value& resolved) {
  Value settings = settings_for_accuracy(resolved);
  settings.erase("seed");
  constexpr std::size_t kDigits = 16;
  return xxh3_128(to_json(settings)).substr(0, kDigits);
}

}  // namespace

Value settings_for_accuracy(Value resolved) {
  for (const char* key : {"name", "device", "threads", "checkpoint", "report", "log_every"}) resolved.erase(key);
  for (const std::string_view key : training_keys()) resolved.erase(key);  // each stage has its own
  if (Value* const data = resolved.find("data")) data->erase("root");
  return resolved;
}

std::optional<Cell> make_cell(const TableFile& table, const ArmConfig& arm, std::int64_t seed, std::optional<double> tuned,
                              std::vector<ConfigProblem>& problems) {
  std::optional<Experiment> experiment = load_experiment(arm.experiment, overrides_of(table, arm, seed, tuned), problems);
  if (!experiment) return std::nullopt;
  std::string key = key_of(experiment->resolved);
  return Cell{arm.name, seed, tuned, std::move(*experiment), std::move(key)};
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
