// What is left to do for a table file, by the results that there are.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/io/vfs.h"
#include "train/reproduce/cell.h"
#include "train/reproduce/reproduce.h"
#include "train/reproduce/results_file.h"
#include "train/reproduce/table_view.h"

namespace tessera {

class TablePlan {
 public:
  // Reads the table file, the arms' experiments and the results. Throws ConfigError with every problem of theirs.
  TablePlan(Vfs& vfs, const std::string& table_file, const ReproduceOptions& options);
  TablePlan(const TablePlan&) = delete;
  TablePlan& operator=(const TablePlan&) = delete;

  // Chooses each arm's tuned value where there are the results for it.
  void choose_all();
  // Cells that have no result, in the order in which they run: cells that a choice waits for stand before the cells that follow
  // from it.
  std::vector<Cell> pending() const;
  // Cells that follow from a choice not yet made, with the first value in place of the chosen one.
  std::vector<Cell> undecided() const;
  // Tries the experiment of each arm's first cell. Throws ConfigError with all that is wrong with any of them.
  void check(std::span<const Cell> cells) const;
  // The cell of a row's first seed.
  Cell first_cell(const ArmRow& row) const;

  const TableFile& table() const { return table_; }
  const std::string& runs() const { return runs_; }  // folder of the table's runs
  const std::string& stem() const { return stem_; }  // of the result's files
  ResultsFile& results() { return results_; }
  const ResultsFile& results() const { return results_; }
  TableView view() const { return view_of(table_, arms_, results_); }

 private:
  std::vector<std::optional<double>> values() const;  // of the tuned key; one without a value in a table that tunes nothing
  bool runs_with(const ArmChoice& choice, std::int64_t seed) const;
  void add_tuning(std::vector<Cell>& cells) const;

  TableFile table_;
  std::string runs_;
  std::string stem_;
  ResultsFile results_;
  std::vector<ArmChoice> arms_;
};

}  // namespace tessera
