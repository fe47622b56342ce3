// A cell of a table: one arm with one seed, and where the table tunes a setting one value of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/reproduce/table_file.h"

namespace tessera {

struct Cell {
  std::string arm;
  std::int64_t seed = 0;
  std::optional<double> tuned;  // value of TuneConfig::key
  Experiment experiment;  // its name is the cell's: "admm-lr0.05-seed1"
  // Hash of the resolved experiment without the seed and whatever accuracy does not depend on: name, folder of the data, device,
  // threads, checkpointing, report. Equal keys are equal settings.
  std::string key;

  const std::string& name() const { return experiment.config.name; }
};

// Throws ConfigError with every problem of the arm's experiment.
Cell make_cell(const TableFile& table, const ArmConfig& arm, std::int64_t seed, std::optional<double> tuned);
// The same, with problems appended.
std::optional<Cell> make_cell(const TableFile& table, const ArmConfig& arm, std::int64_t seed, std::optional<double> tuned,
                              std::vector<ConfigProblem>& problems);

// What the key is the hash of, with the seed.
Value settings_for_accuracy(Value resolved);

// How many first stages two settings share: 0 where they differ in more than stages.
std::size_t shared_stages(const Value& settings, const Value& other);

}  // namespace tessera
