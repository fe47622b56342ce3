#include "train/reproduce/table_plan.h"

#include <algorithm>
#include <filesystem>

#include "core/config/read.h"
#include "core/support/error.h"
#include "layers/decoding.h"
#include "train/config_file.h"
#include "train/data/builtin.h"
#include "train/plan/check.h"
#include "train/reproduce/comparison.h"

namespace tessera {
namespace {

std::string stem_of(const std::string& table_file, const ReproduceOptions& options, const std::string& name) {
  const std::filesystem::path beside = std::filesystem::path(table_file).parent_path() / "results";
  const std::filesystem::path folder = options.results.empty() ? beside : std::filesystem::path(options.results);
  return (folder / name).string();
}

// Arms with equal settings share their cells.
void add_unless_there(std::vector<Cell>& cells, Cell cell) {
  const auto same = [&](const Cell& other) { return other.key == cell.key && other.seed == cell.seed; };
  if (std::ranges::none_of(cells, same)) cells.push_back(std::move(cell));
}

// The networks of a table are timed together, so these settings must agree.
void require_alike(const Cell& first, const Cell& other, std::vector<ConfigProblem>& problems) {
  const ExperimentConfig& one = first.experiment.config;
  const ExperimentConfig& two = other.experiment.config;
  const auto require = [&](const char* key, const auto& value, const auto& wanted) {
    if (value == wanted) return;
    problems.push_back(problem_at(other.experiment.marks, key,
                                  str("is ", value, " in arm ", other.arm, " and ", wanted, " in arm ", first.arm,
                                      "; the networks of a table are timed together, so all arms need the same")));
  };
  require("precision", two.precision, one.precision);
  require("device", two.device, one.device);
  require("threads.compute", two.threads.compute, one.threads.compute);
  require("data.name", two.data.name(), one.data.name());
}

}  // namespace

TablePlan::TablePlan(Vfs& vfs, const std::string& table_file, const ReproduceOptions& options)
    : table_(load_table_file(table_file)),
      runs_(options.runs + "/" + table_.name),
      stem_(stem_of(table_file, options, table_.name)),
      results_(vfs, stem_ + ".jsonl") {
  std::vector<ConfigProblem> problems;
  std::optional<Cell> first;
  for (const ArmConfig& arm : table_.arms) {
    ArmChoice& choice = arms_.emplace_back();
    choice.arm = &arm;
    for (const std::optional<double> value : values()) {
      std::optional<Cell> cell = make_cell(table_, arm, table_.seeds_of(arm).front(), value, problems);
      if (!cell) continue;
      choice.keys.push_back(cell->key);
      choice.inputs.push_back(sample_shape(cell->experiment.config.data));
      if (first) {
        require_alike(*first, *cell, problems);
      } else {
        first = std::move(cell);
      }
    }
  }
  find_incomparable(table_, arms_, problems);
  if (!problems.empty()) throw_config_error(tidy(std::move(problems), 0));
  choose_all();
}

std::vector<std::optional<double>> TablePlan::values() const {
  if (!table_.tune) return {std::nullopt};
  return {table_.tune->values.begin(), table_.tune->values.end()};
}

void TablePlan::choose_all() {
  for (ArmChoice& choice : arms_) {
    if (choice.arm->tuned_as.empty()) choose(choice, table_, results_);
  }
  for (ArmChoice& choice : arms_) {
    if (choice.arm->tuned_as.empty()) continue;
    const ArmChoice& other =
        *std::ranges::find(arms_, choice.arm->tuned_as, [](const ArmChoice& each) { return each.arm->name; });
    choice.settled = other.settled;
    choice.tuned = other.tuned;
    if (!choice.settled) continue;
    const auto value = std::ranges::find(table_.tune->values, *choice.tuned) - table_.tune->values.begin();
    choice.key = choice.keys.at(static_cast<std::size_t>(value));
  }
}

bool TablePlan::runs_with(const ArmChoice& choice, std::int64_t seed) const {
  const std::vector<std::int64_t>& seeds = table_.seeds_of(*choice.arm);
  return std::ranges::find(seeds, seed) != seeds.end();
}

void TablePlan::add_tuning(std::vector<Cell>& cells) const {
  for (std::size_t i = 0; i < values().size(); ++i) {
    for (const ArmChoice& choice : arms_) {
      if (!choice.arm->tuned_as.empty() || results_.find(choice.keys[i], table_.tune->seed) != nullptr) continue;
      add_unless_there(cells, make_cell(table_, *choice.arm, table_.tune->seed, values()[i]));
    }
  }
}

std::vector<Cell> TablePlan::pending() const {
  std::vector<Cell> cells;
  if (table_.tune) add_tuning(cells);
  for (const std::int64_t seed : table_.seeds) {
    for (const ArmChoice& choice : arms_) {
      if (!choice.settled || !runs_with(choice, seed) || results_.find(choice.key, seed) != nullptr) continue;
      add_unless_there(cells, make_cell(table_, *choice.arm, seed, choice.tuned));
    }
  }
  return cells;
}

std::vector<Cell> TablePlan::undecided() const {
  std::vector<Cell> cells;
  for (const std::int64_t seed : table_.seeds) {
    for (const ArmChoice& choice : arms_) {
      if (choice.settled || !runs_with(choice, seed)) continue;
      if (seed == table_.tune->seed && choice.arm->tuned_as.empty()) continue;
      cells.push_back(make_cell(table_, *choice.arm, seed, table_.tune->values.front()));
    }
  }
  return cells;
}

void TablePlan::check(std::span<const Cell> cells) const {
  std::vector<std::string> checked;
  std::vector<ConfigProblem> problems;
  const DecisionMap no_decisions;  // a clock may be asked, unless the experiment forbids it
  for (const Cell& cell : cells) {
    if (std::ranges::find(checked, cell.arm) != checked.end()) continue;
    checked.push_back(cell.arm);
    std::optional<RunInputs> found = check_experiment(cell.experiment, problems, &no_decisions);
    if (!found) continue;
    const std::string reason = table_.decode ? why_not_decode(*found->initial.model) : "";
    if (!reason.empty()) {
      problems.push_back(problem_at(cell.experiment.marks, "model", str("the table times decode, but ", reason)));
    }
    if (table_.tune && found->data.val.size() == 0) {
      problems.push_back(problem_at(cell.experiment.marks, "data.val",
                                    str("leaves no validation split, by which the table chooses ", table_.tune->key)));
    }
  }
  if (!problems.empty()) throw_config_error(tidy(std::move(problems), 0));
}

Cell TablePlan::first_cell(const ArmRow& row) const {
  const auto arm = std::ranges::find(table_.arms, row.arm, &ArmConfig::name);
  Cell cell = make_cell(table_, *arm, row.cells.front().seed, row.tuned);
  cell.experiment.config.name = row.cells.front().name;  // the name of its run, even if the arm is called otherwise now
  cell.experiment.resolved = write(cell.experiment.config);
  return cell;
}

}  // namespace tessera
