#include "tests/train/schema/observed.h"

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>
#include <vector>

#include "compress/report.h"
#include "core/support/error.h"
#include "core/support/hash.h"
#include "core/support/text.h"
#include "tests/train/schema/test_files.h"
#include "train/checkpoint/store.h"
#include "train/config/yaml.h"
#include "train/config/yaml_writer.h"
#include "train/plan/plan.h"
#include "train/report/table.h"
#include "train/run/session.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;

std::string read_if_there(const fs::path& path) {
  return real_vfs().exists(path) ? real_vfs().read_file(path) : "no " + path.filename().string();
}

std::string weights_and_state(const fs::path& run) {
  const fs::path folder = CheckpointStore(real_vfs(), run / "checkpoints").load_latest().folder;
  std::string hashes;
  for (const DirectoryEntry& entry : real_vfs().list(folder)) {
    if (!entry.name.ends_with(".safetensors")) continue;
    Xxh3Stream hash;
    hash.update(real_vfs().read_file(folder / entry.name));
    hashes += str(entry.name, ' ', hash.hex(), '\n');
  }
  return hashes;
}

std::string table_without_times(const fs::path& run) {
  const std::vector<std::string> runs{run.string()};
  Table table = make_table(real_vfs(), runs, nullptr);
  for (TableRow& row : table.rows) {
    for (TableLatency& latency : row.latency) {
      latency.time = latency.speedup = {};
      latency.of_medians = latency.alone = 0;
    }
  }
  return to_json(to_value(table));
}

std::string files_of(const fs::path& run) {
  const fs::path runs = run.parent_path().parent_path();
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(runs)) names.push_back(fs::relative(entry.path(), runs).string());
  std::ranges::sort(names);
  std::string text;
  for (const std::string& name : names) text += name + '\n';
  return text + read_if_there(run / "decisions.json");
}

std::string without_rates(const std::string& text) { return std::regex_replace(text, std::regex(" +[0-9]+ img/s"), ""); }

// report.md with SPEED in place of every time and every ratio of times.
std::string without_speeds(const std::string& text) {
  static const std::regex speed(R"(([0-9.e+-]+ -> [0-9.e+-]+ ms, )?[0-9.]+x \([0-9.]+-[0-9.]+\))");
  return std::regex_replace(text, speed, "SPEED");
}

std::string layers_without_times(const fs::path& run) {
  const std::string text = read_if_there(run / "layers.csv");
  if (text.find(',') == std::string::npos) return text;
  const std::vector<std::vector<std::string>> rows = parse_csv(text, "layers.csv");
  std::string kept;
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!is_clock_column(rows[0][i])) kept += row[i] + ',';
    }
    kept += '\n';
  }
  return kept;
}

}  // namespace

const std::string& Observed::plan() {
  if (plan_) return *plan_;
  try {
    plan_ = to_json(to_value(make_plan(parse_experiment(parse_yaml(to_yaml(file_), "generated.yaml")))));
  } catch (const Error& error) {
    refused_ = true;
    plan_ = str("refused: ", error.what());
  }
  return *plan_;
}

bool Observed::refused() {
  plan();
  return refused_;
}

const Observed::Shown& Observed::run() {
  if (run_) return *run_;
  static int count = 0;
  const std::string text = to_yaml(file_);
  Experiment experiment = parse_experiment(parse_yaml(text, "generated.yaml"));
  const RunFolder folder = RunFolder::create(real_vfs(), test_files() / "runs" / std::to_string(++count), experiment.config.name);
  std::ostringstream out;
  SessionOptions options;
  options.out = &out;
  RunInputs inputs = load_inputs(real_vfs(), experiment.config);
  Session::start(real_vfs(), std::move(experiment), std::move(inputs), text, folder, options).run();
  run_ = Shown{folder.path(), out.str()};
  return *run_;
}

const fs::path& Observed::run_folder() { return run().folder; }

const std::string& Observed::at(std::string_view where) {
  if (where == "plan" || refused()) return plan();
  std::optional<std::string>& known = where == "bytes" ? bytes_ : where == "report" ? report_ : where == "files" ? files_ : log_;
  if (!known) known = read(where);
  return *known;
}

std::string Observed::read(std::string_view where) {
  const fs::path& run = run_folder();
  if (where == "bytes") return weights_and_state(run);
  if (where == "report") {
    return without_speeds(read_if_there(run / "report.md")) + layers_without_times(run) + table_without_times(run);
  }
  if (where == "files") return files_of(run);
  if (where == "log") {
    return without_rates(run_->output) + without_rates(read_if_there(run / "train.log")) + read_if_there(run / "metrics.jsonl");
  }
  throw InternalError(str("no observable '", where, '\''));
}

Observed& observed(const Value& file) {
  static std::map<std::string, Observed> all;
  return all.try_emplace(to_json(file), file).first->second;
}

}  // namespace tessera::testing
