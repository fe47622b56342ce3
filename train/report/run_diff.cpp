#include "train/report/run_diff.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>

#include "compress/report.h"
#include "compress/timing/veto.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/checkpoint/store.h"
#include "train/config/yaml.h"
#include "train/experiment.h"
#include "train/run/decisions_file.h"
#include "train/run/run_folder.h"
#include "train/run/run_state.h"
#include "train/run/saved_model.h"

namespace tessera {
namespace {

struct Metrics {
  std::vector<Value> rows;
  Leaves stages;  // last loss, last and best validation metric of each
};

// What could be read of one side. What could not be read is empty and listed as trouble.
struct LoadedSide {
  Leaves keys;
  std::optional<Leaves> environment, data, decisions, layers;
  Metrics metrics;
  std::optional<Checkpoint> checkpoint;
};

// Reads a run's files. Each fault is noted, and the part that it concerns stays empty.
class SideReader {
 public:
  SideReader(Vfs& vfs, RunFolder folder, char side, std::vector<std::string>& trouble)
      : vfs_(vfs), folder_(std::move(folder)), side_(side), trouble_(trouble) {}

  LoadedSide read() {
    LoadedSide side;
    attempt([&] { side.environment = environment(); });
    attempt([&] { side.decisions = decisions(); });
    attempt([&] { side.layers = layers(); });
    attempt([&] { side.metrics = metrics(); });
    attempt([&] { side.checkpoint = checkpoint(); });
    if (side.checkpoint) attempt([&] { side.data = Leaves{{"fingerprint", side.checkpoint->manifest.at("data")}}; });
    return side;
  }

 private:
  void attempt(const std::function<void()>& part) {
    try {
      part();
    } catch (const Error& error) {
      note(error.what());
    }
  }
  void note(const std::string& what) { trouble_.push_back(str(side_, ": ", what)); }

  Leaves environment() {
    const std::string path = folder_.environment();
    TESSERA_CHECK(vfs_.exists(path), IoError, path, " is missing; environments are not compared");
    Leaves leaves = config_leaves(parse_json(vfs_.read_file(path), path));
    leaves.erase("host");  // the name of the machine is no property of the run
    return leaves;
  }

  Leaves decisions() {
    Leaves leaves;
    if (!vfs_.exists(folder_.decisions())) return leaves;
    for (const auto& [key, choice] : read_decisions(vfs_, folder_.decisions())) {
      const bool timing = key.starts_with(kKeepDecision) || key.starts_with(kSpeedDecision);
      leaves[key] = timing ? verdict_of(choice) : choice;  // without the times
    }
    return leaves;
  }

  // The file exists from the run's first pass on.
  Leaves layers() {
    Leaves leaves;
    const std::string path = folder_.layers();
    if (!vfs_.exists(path)) return leaves;
    const std::vector<std::vector<std::string>> rows = parse_csv(vfs_.read_file(path), path);
    for (std::size_t i = 1; i < rows.size(); ++i) {
      TESSERA_CHECK(rows[i].size() == rows[0].size() && rows[i].size() > 2, IoError, path, ":", i + 1, ": has ", rows[i].size(),
                    " fields, the header ", rows[0].size());
      for (std::size_t column = 2; column < rows[i].size(); ++column) {
        const std::string& name = rows[0][column];
        if (is_clock_column(name)) continue;
        const std::string& field = rows[i][column];
        leaves[str(rows[i][0], ':', rows[i][1], ':', name)] = number_or_text(field);
      }
    }
    return leaves;
  }

  static Value number_or_text(const std::string& text) {
    const auto whole = [&]<class T>(T number) -> std::optional<Value> {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      return error == std::errc() && end == text.data() + text.size() ? std::optional<Value>(number) : std::nullopt;
    };
    if (const auto integer = whole(std::int64_t{0})) return *integer;
    if (const auto real = whole(0.0)) return *real;
    return text;
  }

  // Reads up to the first line that is not a row: a run that was killed may have left half a line.
  Metrics metrics() {
    Metrics metrics;
    const std::string path = folder_.metrics();
    if (!vfs_.exists(path)) return metrics;
    const std::string text = vfs_.read_file(path);
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t line = metrics.rows.size() + 1;
      const std::size_t end = text.find('\n', begin);
      try {
        TESSERA_CHECK(end != std::string::npos, IoError, "the line has no end");
        Value row = parse_json(std::string_view(text).substr(begin, end - begin), path);
        add_to_stages(row, metrics.stages);
        metrics.rows.push_back(std::move(row));
      } catch (const Error& error) {
        note(str(path, ":", line, ": ", error.what(), "; compared up to there"));
        return metrics;
      }
      begin = end + 1;
    }
    return metrics;
  }

  static void add_to_stages(const Value& row, Leaves& stages) {
    const std::string stage = row.at("stage").as_string();
    row.at("step").as_int();
    if (const Value* loss = row.find("loss")) stages[stage + ":loss"] = *loss;
    for (const Task* task : builtin_tasks()) {
      const Metric& metric = task->metrics().front();
      const Value* value = row.find(str("val_", metric.key));
      if (value == nullptr) continue;
      stages[str(stage, ":val_", metric.key)] = *value;
      Value& best = stages[str(stage, ":best_val_", metric.key)];
      if (best.is_null() || metric.better(value->as_double(), best.as_double())) best = *value;
    }
  }

  std::optional<Checkpoint> checkpoint() {
    const CheckpointStore store(vfs_, folder_.checkpoints());
    if (store.empty()) return {};
    Checkpoint checkpoint = store.load_latest();
    for (const std::string& message : checkpoint.damaged) note(str("passed over a damaged checkpoint: ", message));
    return checkpoint;
  }

  Vfs& vfs_;
  RunFolder folder_;
  char side_;
  std::vector<std::string>& trouble_;
};

// The keys as `train` would write them on this machine.
Leaves file_keys(const std::string& path) {
  ExperimentConfig config = load_experiment(path).config;
  settle_for_run(config);
  return config_leaves(write(config));
}

LoadedSide load_side(Vfs& vfs, DiffSide& side, char name, std::vector<std::string>& trouble) {
  TESSERA_CHECK(vfs.exists(side.path), ConfigError, "diff: no run folder or experiment file ", side.path);
  std::error_code ignored;
  side.is_run = std::filesystem::is_directory(side.path, ignored);
  LoadedSide loaded;
  if (!side.is_run) {
    loaded.keys = file_keys(side.path);
    return loaded;
  }
  const RunFolder folder = RunFolder::open(vfs, side.path);
  side.path = folder.path();
  const Value resolved = parse_experiment(load_yaml(folder.resolved_config())).resolved;
  loaded = SideReader(vfs, folder, name, trouble).read();
  loaded.keys = config_leaves(resolved);
  if (!loaded.checkpoint) return loaded;
  side.step = loaded.checkpoint->step;
  if (const Value* stage = loaded.checkpoint->manifest.find("stage_name")) side.stage = stage->as_string();
  return loaded;
}

FirstMetric first_of(std::size_t row, const Value* a, const Value* b) {
  const Value& shown = a != nullptr ? *a : *b;
  FirstMetric first;
  first.line = static_cast<std::int64_t>(row) + 1;
  first.stage = shown.at("stage").as_string();
  first.step = shown.at("step").as_int();
  first.values = changes(a != nullptr ? config_leaves(*a) : Leaves(), b != nullptr ? config_leaves(*b) : Leaves());
  return first;
}

std::optional<FirstMetric> first_difference(const std::vector<Value>& a, const std::vector<Value>& b) {
  for (std::size_t row = 0; row < std::max(a.size(), b.size()); ++row) {
    const Value* left = row < a.size() ? &a[row] : nullptr;
    const Value* right = row < b.size() ? &b[row] : nullptr;
    if (left == nullptr || right == nullptr || !(*left == *right)) return first_of(row, left, right);
  }
  return {};
}

// A difference is known only if both sides have the data.
std::optional<std::vector<KeyChange>> known_changes(const std::optional<Leaves>& a, const std::optional<Leaves>& b) {
  return a && b ? std::optional(changes(*a, *b)) : std::nullopt;
}

WeightsDiff compare_weights(const State& a, const State& b) {
  WeightsDiff diff;
  diff.tensors = static_cast<std::int64_t>(a.tensors.size());
  for (const auto& [name, tensor] : b.tensors) diff.tensors += a.tensors.contains(name) ? 0 : 1;
  diff.differing = tensor_differences(a, b);
  return diff;
}

}  // namespace

bool RunDiff::differ() const {
  const bool measured = !metrics.empty() || first_metric || (weights && !weights->differing.empty());
  const bool stand_apart = both_runs() && a.step != b.step;
  const auto sections = {&environment, &data, &decisions, &layers};
  return !keys.empty() || measured || stand_apart || !trouble.empty() ||
         std::ranges::any_of(sections, [](const auto* section) { return *section && !(*section)->empty(); });
}

RunDiff compare_runs(Vfs& vfs, const std::string& a, const std::string& b) {
  RunDiff diff;
  diff.a.path = a;
  diff.b.path = b;
  std::vector<std::string> trouble;
  const LoadedSide left = load_side(vfs, diff.a, 'a', trouble);
  const LoadedSide right = load_side(vfs, diff.b, 'b', trouble);
  diff.keys = changes(left.keys, right.keys);
  if (!diff.both_runs()) return diff;
  diff.trouble = std::move(trouble);
  diff.environment = known_changes(left.environment, right.environment);
  diff.data = known_changes(left.data, right.data);
  diff.metrics = changes(left.metrics.stages, right.metrics.stages);
  diff.first_metric = first_difference(left.metrics.rows, right.metrics.rows);
  diff.decisions = known_changes(left.decisions, right.decisions);
  diff.layers = known_changes(left.layers, right.layers);
  if (left.checkpoint.has_value() != right.checkpoint.has_value()) {
    diff.trouble.push_back(str(left.checkpoint ? 'b' : 'a', ": has no intact checkpoint; data and weights are not compared"));
  }
  if (left.checkpoint && right.checkpoint) {
    diff.weights = compare_weights(saved_weights(*left.checkpoint), saved_weights(*right.checkpoint));
  }
  return diff;
}

}  // namespace tessera
