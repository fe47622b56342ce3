// The table of quality against speed: one row per finished stage, computed from the saved checkpoints. Runs that differ
// in nothing but the seed share their rows.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compress/timing/latency.h"
#include "core/config/fields.h"
#include "core/io/vfs.h"
#include "train/tasks/builtin.h"

namespace tessera {

struct TableLatency {
  std::int64_t batch = 0;
  Summary time;
  Summary speedup;  // over the first stage's network, timed in the same rounds
  double of_medians = 1;  // the same of the two medians
  double alone = 0;  // milliseconds, of the network timed alone
  Phase phase = Phase::inference;  // or decode

  void fields(Fields& f);
};

// What the networks of a row's runs cost, where ranks or vetoes differ from seed to seed.
struct CostRange {
  std::int64_t least_parameters = 0, greatest_parameters = 0;
  std::int64_t least_macs = 0, greatest_macs = 0;
};

struct TableRow {
  std::string experiment;
  std::string stage;
  const Metric* metric = &usual_metric();  // the first of the runs' task
  std::vector<double> values;  // of it on the test split, per run, in the order given
  std::int64_t parameters = 0;  // of the first run, as are MACs, bytes and latency
  std::int64_t macs = 0;  // per sample
  std::int64_t file_bytes = 0;  // of the model's weights on disk
  std::vector<TableLatency> latency;
  std::string processor = {};  // where it was timed, for a GPU also how; empty = the table's, and threads too
  std::int64_t threads = 0;  // 0 on a GPU
  std::optional<CostRange> range = {};  // over all runs; empty where their networks cost the same

  CostRange cost_range() const;
  double mean() const;
  std::optional<double> stddev() const;  // of the sample; empty of fewer than three runs
  void fields(Fields& f);
};

struct Table {
  std::string processor;  // of the rows that name none
  std::int64_t threads = 0;  // likewise
  std::vector<TableRow> rows;

  void fields(Fields& f);  // each row names its processor and threads
};

// Loads every stage's last checkpoint of every run, evaluates it on the test split and times it on this machine, batch norms
// folded into convolutions (layers/fold.h). `device` stands for the runs' own unless it is empty. Runs are one experiment when
// their resolved configs are equal but for what cannot change what is learnt: seed, threads.loader, checkpoint, report,
// log_every; the first of them is timed, as its report block says. Experiments of one name carry the folder of their first run.
// Throws ConfigError on a device that is not there, on runs of several tasks, and when the runs of an experiment have not
// finished the same stages, IoError when a stage's last checkpoint is damaged. Progress goes to `out` when it is not null.
Table make_table(Vfs& vfs, std::span<const std::string> runs, std::ostream* out, const std::string& device = {});

std::string to_markdown(const Table& table);
std::string to_csv(const Table& table);
Value to_value(const Table& table);

}  // namespace tessera
