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
  Experiment experiment;  // as its run on this machine has it; named like the cell: "admm-lr0.05-seed1"
  std::string text;  // the same before device, threads and batches were settled: config.yaml of its run
  std::string key;  // hash of settings_for_figures() without the seed

  const std::string& name() const { return experiment.config.name; }
};

// Throws ConfigError with every problem of the arm's experiment.
Cell make_cell(const TableFile& table, const ArmConfig& arm, std::int64_t seed, std::optional<double> tuned);
// The same, with problems appended.
std::optional<Cell> make_cell(const TableFile& table, const ArmConfig& arm, std::int64_t seed, std::optional<double> tuned,
                              std::vector<ConfigProblem>& problems);

// The settings of a run without those that its figures do not depend on: name, folder of the data, checkpointing, report, log.
// The machine counts where a stage leaves layers or ranks to the clock, from that stage on: the GPU, or processor and threads.
// `environment`: the run's env.json.
Value settings_for_figures(const ExperimentConfig& config, const Value& environment);

// How many first stages two settings share: 0 where they differ in more than stages.
std::size_t shared_stages(const Value& settings, const Value& other);

}  // namespace tessera
