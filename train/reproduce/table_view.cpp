#include "train/reproduce/table_view.h"

#include <algorithm>
#include <utility>

#include "compress/timing/summary.h"
#include "core/support/log.h"
#include "train/reproduce/comparison.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

void add_stages(ArmRow& row, const CellResult& cell) {
  for (const StageOutcome& outcome : cell.stages) {
    auto found = std::ranges::find(row.stages, outcome.stage, &StageMean::stage);
    if (found == row.stages.end()) {
      found = row.stages.insert(
          row.stages.end(),
          {.stage = outcome.stage, .parameters = outcome.parameters, .macs = outcome.macs, .sparsity = outcome.sparsity});
    }
    found->tests.push_back(outcome.test->value);
    if (outcome.residual) found->residuals.push_back(*outcome.residual);
  }
}

ArmRow row_of(const TableFile& table, const ArmChoice& choice, const ResultsFile& results) {
  ArmRow row{.arm = choice.arm->name, .tuned = choice.tuned};
  for (const std::int64_t seed : table.seeds_of(*choice.arm)) {
    const CellResult* const cell = results.find(choice.key, seed);
    if (cell == nullptr) continue;
    if (cell->failed) {
      row.failures.push_back(str("seed ", seed, ": ", *cell->failed));
      continue;
    }
    row.cells.push_back(*cell);
    add_stages(row, *cell);
  }
  return row;
}

const ArmRow* find_row(std::span<const ArmRow> rows, const std::string& arm) {
  const auto found = std::ranges::find(rows, arm, &ArmRow::arm);
  return found == rows.end() ? nullptr : &*found;
}

// Mean difference over the seeds that both rows have.
MeanInterval paired(const ArmRow& row, const ArmRow& other) {
  std::vector<double> differences;
  for (const CellResult& cell : row.cells) {
    const auto match = std::ranges::find(other.cells, cell.seed, &CellResult::seed);
    if (match != other.cells.end()) differences.push_back(cell.test() - match->test());
  }
  return mean_interval(differences);
}

// Drops the speed-up if the row is compared with another arm than the first of `times`.
std::optional<ArmTime> time_of(const ArmRow& row, const ArmTimes& times) {
  const auto found = std::ranges::find(times.arms, row.arm, &ArmTime::arm);
  if (found == times.arms.end()) return std::nullopt;
  ArmTime time = *found;
  if (times.arms.front().arm != row.against) time.speedup.reset();
  if (time.speedup) time.of_medians = times.arms.front().time.median / time.time.median;
  return time;
}

void add_commit(TableView& view, const std::string& commit) {
  if (!commit.empty() && std::ranges::find(view.commits, commit) == view.commits.end()) view.commits.push_back(commit);
}

void add_times(TableView& view, const ResultsFile& results) {
  const std::vector<TimedBatch> timed = view.file.timed();
  for (ArmRow& row : view.rows) row.times.resize(timed.size());
  for (const TimedGroup& group : timed_groups(view.rows)) {
    for (std::size_t i = 0; i < timed.size(); ++i) {
      const ArmTimes* const times = results.find_times(group.key, view.rows[group.rows.front()].arm, timed[i]);
      if (times == nullptr) continue;
      add_commit(view, times->commit);
      for (const std::size_t row : group.rows) {
        std::optional<ArmTime>& time = view.rows[row].times[i];
        if (!time || !time->speedup) time = time_of(view.rows[row], *times);
      }
      view.timed_on = times->processor + (times->threads > 0 ? str(", ", times->threads, " threads") : "");
    }
  }
}

// Compares the metric on val. A run that failed is the worst.
bool is_better(const CellResult& cell, const CellResult& than) {
  if (cell.failed || than.failed) return !cell.failed && than.failed;
  const std::optional<double> value = cell.val(), other = than.val();
  if (!value || !other) return value && !other;
  return metric_of(cell.stages.back().test->metric).better(*value, *other);
}

// The metric of the first cell that has a figure. A table without figures has the head of the first task's metric.
const Metric& metric_of_rows(std::span<const ArmRow> rows) {
  for (const ArmRow& row : rows) {
    if (!row.cells.empty()) return metric_of(row.cells.front().stages.back().test->metric);
  }
  return usual_metric();
}

}  // namespace

void choose(ArmChoice& choice, const TableFile& table, const ResultsFile& results) {
  if (!table.tune) {
    choice.settled = true;
    choice.key = choice.keys.front();
    return;
  }
  const CellResult* taken = nullptr;
  for (std::size_t i = 0; i < choice.keys.size(); ++i) {
    const CellResult* const cell = results.find(choice.keys[i], table.tune->seed);
    if (cell == nullptr) return;
    if (taken != nullptr && !is_better(*cell, *taken)) continue;
    taken = cell;
    choice.tuned = table.tune->values[i];
    choice.key = choice.keys[i];
  }
  choice.settled = true;
}

const Shape& ArmChoice::input() const { return inputs.at(static_cast<std::size_t>(std::ranges::find(keys, key) - keys.begin())); }

std::vector<double> ArmRow::tests() const {
  std::vector<double> values;
  for (const CellResult& cell : cells) values.push_back(cell.test());
  return values;
}

double ArmRow::train_seconds() const {
  std::vector<double> seconds;
  for (const CellResult& cell : cells) seconds.push_back(cell.train_seconds);
  return quantile(std::move(seconds), 0.5);
}

bool TableView::has_inputs() const {
  return std::ranges::adjacent_find(rows, std::ranges::not_equal_to(), &ArmRow::input) != rows.end();
}

bool TableView::has_against() const {
  return std::ranges::any_of(rows, [&](const ArmRow& row) { return row.against != file.baseline_arm(); });
}

TableView view_of(const TableFile& table, std::span<const ArmChoice> arms, const ResultsFile& results) {
  TableView view{.file = table};
  for (const ArmChoice& arm : arms) view.wanted += table.seeds_of(*arm.arm).size();
  for (const ArmChoice& arm : arms) {
    if (!arm.settled) continue;
    ArmRow row = row_of(table, arm, results);
    row.input = arm.input();
    row.against = table.compared_with(*arm.arm);
    view.cells += row.cells.size() + row.failures.size();
    for (const CellResult& cell : row.cells) add_commit(view, cell.commit);
    if (!row.cells.empty() || !row.failures.empty()) view.rows.push_back(std::move(row));
  }
  view.metric = &metric_of_rows(view.rows);
  for (ArmRow& row : view.rows) {
    const ArmRow* const against = row.is_baseline() ? nullptr : find_row(view.rows, row.against);
    if (against != nullptr) row.difference = paired(row, *against);
  }
  for (const QuestionConfig& question : table.questions) {
    const ArmRow* const arm = find_row(view.rows, question.arm);
    const ArmRow* const against = find_row(view.rows, question.against);
    if (arm != nullptr && against != nullptr) view.answers.push_back({question, view.metric, paired(*arm, *against)});
  }
  add_times(view, results);
  return view;
}

}  // namespace tessera
