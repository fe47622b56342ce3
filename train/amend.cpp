#include "train/amend.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <tuple>

#include "core/config/read.h"
#include "core/error.h"
#include "core/log.h"
#include "train/checkpoint/run_lock.h"
#include "train/checkpoint/store.h"
#include "train/config/overrides.h"
#include "train/config/yaml.h"
#include "train/config/yaml_writer.h"
#include "train/experiment.h"
#include "train/position.h"

namespace tessera {
namespace {

void flatten(const Value& value, const std::string& path, std::map<std::string, std::string>& leaves) {
  if (value.is_map()) {
    for (const Value::Entry& entry : value.as_map())
      flatten(entry.value, path.empty() ? entry.key : path + "." + entry.key, leaves);
  } else if (value.is_list() &&
             std::any_of(value.as_list().begin(), value.as_list().end(), [](const Value& v) { return v.is_map(); })) {
    for (std::size_t i = 0; i < value.as_list().size(); ++i) flatten(value.as_list()[i], str(path, '[', i, ']'), leaves);
  } else {
    leaves[path] = to_json(value);
  }
}

// Dotted keys whose values differ.
std::vector<std::string> changed_keys(const Value& before, const Value& after) {
  std::map<std::string, std::string> old_leaves;
  std::map<std::string, std::string> new_leaves;
  flatten(before, "", old_leaves);
  flatten(after, "", new_leaves);
  std::vector<std::string> keys;
  for (const auto& [key, text] : old_leaves) {
    const auto found = new_leaves.find(key);
    if (found == new_leaves.end() || found->second != text) keys.push_back(key);
  }
  for (const auto& [key, text] : new_leaves) {
    if (!old_leaves.contains(key)) keys.push_back(key);
  }
  return keys;
}

// A checkpoint as its manifest describes it; its tensors are not read.
struct SavedPoint {
  std::filesystem::path folder;
  Manifest manifest;
  Position position;
  std::string stage;

  std::string label() const { return position.stage_done ? stage : std::to_string(manifest.step); }
};

// Stages that are over where a run stands.
std::int64_t finished_stages(const Position& position) { return position.stage + (position.stage_done ? 1 : 0); }

// Oldest first. One whose manifest is damaged is left out: it may be one that nobody needs.
std::vector<SavedPoint> saved_points(Vfs& vfs, const RunFolder& run) {
  std::vector<SavedPoint> points;
  const std::filesystem::path root = run.checkpoints();
  if (!vfs.exists(root)) return points;
  for (const DirectoryEntry& entry : vfs.list(root)) {
    if (!entry.is_directory || !entry.name.starts_with("step-")) continue;
    try {
      Manifest manifest = read_manifest(vfs, root / entry.name);
      const Position position = read<Position>(manifest.extra.at("position"));
      const std::string stage = manifest.extra.at("stage_name").as_string();
      points.push_back({root / entry.name, std::move(manifest), position, stage});
    } catch (const IoError& error) {
      log_warning(str("passed over a damaged checkpoint: ", error.what()));
    }
  }
  // The longer name of one step is its later revision: step-7, step-7.1, ..., step-7.10.
  std::ranges::sort(points, {}, [](const SavedPoint& point) {
    const std::string name = point.folder.filename().string();
    return std::tuple(point.manifest.step, name.size(), name);
  });
  return points;
}

// What is wrong with a checkpoint's files; empty when they are as they were written.
std::string damage(Vfs& vfs, const SavedPoint& point) {
  try {
    for (const FileRecord& record : point.manifest.files) read_verified(vfs, point.folder, record);
    return "";
  } catch (const IoError& error) {
    return error.what();
  }
}

const SavedPoint& find_point(Vfs& vfs, const std::vector<SavedPoint>& points, const std::string& at) {
  std::string damaged;
  std::string known;
  for (auto point = points.rbegin(); point != points.rend(); ++point) {
    const std::string step = std::to_string(point->manifest.step);
    known = str(' ', step, point->position.stage_done ? "=" + point->stage : "", known);
    if (at != step && !(point->position.stage_done && at == point->stage)) continue;
    const std::string reason = damage(vfs, *point);
    if (reason.empty()) return *point;
    damaged += "\n  " + reason;
  }
  TESSERA_CHECK(damaged.empty(), IoError, "fork: the checkpoint '", at, "' is damaged:", damaged);
  throw ConfigError(str("fork: no checkpoint '", at, "'; there are:", known.empty() ? " none" : known));
}

bool is_training_override(std::string_view path) {
  const auto keys = training_keys();
  return std::find(keys.begin(), keys.end(), path.substr(0, path.find_first_of(".[="))) != keys.end();
}

// Stages of a resolved config own their training keys, so one given for the run is set in each stage from `open` on. Not at the
// top: from there a key that stages of the past lack would reach them too.
void set_in_stages(Value& root, const std::string& text, std::size_t open) {
  for (std::size_t i = open; i < root.at("stages").as_list().size(); ++i) apply_override(root, str("stages[", i, "].", text));
}

// Dropped at the top as well, or the stages would take it from there again. To drop what a stage never had is no mistake.
void drop_in_stages(Value& root, const std::string& path, std::size_t open) {
  apply_override(root, "~" + path);
  for (std::size_t i = open; i < root.at("stages").as_list().size(); ++i) {
    try {
      apply_override(root, str("~stages[", i, "].", path));
    } catch (const ConfigError&) {
    }
  }
}

Value with_overrides(const Value& before, std::span<const std::string> overrides, std::int64_t open) {
  Value changed = before;
  for (const std::string& text : overrides) {
    const bool drops = text.starts_with('~');
    const std::string path = text.substr(drops ? 1 : 0);
    if (!is_training_override(path) || (!drops && path.find('=') == std::string::npos)) {
      apply_override(changed, text);
    } else if (drops) {
      drop_in_stages(changed, path, static_cast<std::size_t>(open));
    } else {
      set_in_stages(changed, text, static_cast<std::size_t>(open));
    }
  }
  return parse_experiment(std::move(changed)).resolved;
}

bool within(const std::string& key, const std::string& block) {
  return key.starts_with(block) && (key.size() == block.size() || key[block.size()] == '.' || key[block.size()] == '[');
}

bool within_any(const std::string& key, std::initializer_list<std::string> blocks) {
  return std::any_of(blocks.begin(), blocks.end(), [&](const std::string& block) { return within(key, block); });
}

// Momentum of 0 keeps no tensor per weight, so the optimiser's saved state fits only one side of it.
bool momentum_appears_or_ends(const Value& before, const Value& after, std::size_t stage) {
  const auto kept = [stage](const Value& root) {
    const Value* momentum = root.at("stages").as_list()[stage].at("optimizer").find("momentum");
    return momentum != nullptr && momentum->as_double() > 0;
  };
  return kept(before) != kept(after);
}

// Why a fork from `position` cannot take another value of `key`; empty when it can.
std::string why_fixed(const std::string& key, const Value& before, const Value& after, const Position& position) {
  if (within(key, "model")) return "the network comes from the checkpoint; train a new run for another network";
  if (key == "seed") return "it drew the data, its split and its order; train a new run for another seed";
  const bool sets_steps = within_any(key, {"data.batch", "data.drop_last"});
  if (within(key, "data") && !sets_steps && !within(key, "data.augment")) {
    return "the checkpoint was trained on this data; train a new run for other data";
  }
  for (std::int64_t stage = 0; stage < finished_stages(position); ++stage) {
    if (within(key, str("stages[", stage, ']'))) return "this stage is over at the fork; fork from an earlier checkpoint";
  }
  if (position.stage_done) return "";
  if (sets_steps) return "the fork is in the middle of a stage, whose steps it counts; fork at the end of a stage";
  const std::string stage = str("stages[", position.stage, "].");
  const bool state = within_any(key, {stage + "optimizer.name", stage + "ema", stage + "train", stage + "factorise"});
  const bool slots =
      key == stage + "optimizer.momentum" && momentum_appears_or_ends(before, after, static_cast<std::size_t>(position.stage));
  if (state || slots) return "the fork is in the middle of this stage, whose saved state needs it; fork at the end of a stage";
  return "";
}

void check_stage_order(const Value& before, const Value& after, std::int64_t last) {
  const Value::List& old_stages = before.at("stages").as_list();
  const Value::List& new_stages = after.at("stages").as_list();
  for (std::size_t i = 0; i <= static_cast<std::size_t>(last); ++i) {
    const std::string& name = old_stages.at(i).at("name").as_string();
    const std::string other = i < new_stages.size() ? new_stages[i].at("name").as_string() : "absent";
    TESSERA_CHECK(name == other, ConfigError, "fork: stages[", i, "] is ", name, ", would be ", other,
                  "; names and order of the stages up to the fork cannot change");
  }
}

// Throws ConfigError when a run cannot go on from `position` with the changed settings.
void check_fork(const Value& before, const Value& after, const Position& position) {
  check_stage_order(before, after, position.stage);
  for (const std::string& key : changed_keys(before, after)) {
    const std::string reason = why_fixed(key, before, after, position);
    TESSERA_CHECK(reason.empty(), ConfigError, "fork: ", key, " cannot change: ", reason);
  }
  TESSERA_CHECK(finished_stages(position) < static_cast<std::int64_t>(after.at("stages").as_list().size()), ConfigError,
                "fork: no stage is left to train after this checkpoint; fork from an earlier one");
}

std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,=/:+%@";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return str(text, '\'');
}

// What to do instead of a refused change: the fork from the newest checkpoint that can take it, or a new run.
std::string instead(Vfs& vfs, const RunFolder& folder, const Value& before, std::span<const std::string> overrides) {
  std::string words;
  for (const std::string& text : overrides) words += str(' ', quoted(text));
  const std::vector<SavedPoint> points = saved_points(vfs, folder);
  for (auto point = points.rbegin(); point != points.rend(); ++point) {
    try {
      check_fork(before, with_overrides(before, overrides, finished_stages(point->position)), point->position);
      return str("start a new one from it with: tessera fork ", quoted(folder.path()), " --at ", quoted(point->label()), words);
    } catch (const ConfigError&) {  // an earlier checkpoint may take it
    }
  }
  return str("no checkpoint of it can take this either: train a new run, tessera train <experiment file>", words);
}

// The stage that is under way or comes next: stages behind it may still be changed in length.
std::int64_t begun_stages(const CheckpointStore& store) {
  if (store.empty()) return 0;
  return read<Position>(store.load_latest().manifest.at("position")).stage + 1;
}

bool alters_the_past(const std::string& key, std::int64_t begun) {
  for (const std::string_view harmless : {"checkpoint.", "report.", "threads.loader"}) {
    if (key.starts_with(harmless)) return false;
  }
  if (key.starts_with("stages[") && key.ends_with("].train")) return std::stoll(key.substr(7)) < begun;
  return true;
}

void append_to_log(const RunFolder& folder, const std::string& what, std::span<const std::string> overrides) {
  std::ofstream log(folder.log(), std::ios::app);
  for (const std::string& text : overrides) log << what << " with " << text << '\n';
  TESSERA_CHECK(log.good(), IoError, "cannot write to ", folder.log());
}

// The manifest goes last, as the store writes it: without it the copy is no checkpoint.
void copy_checkpoint(Vfs& vfs, const SavedPoint& point, const RunFolder& to) {
  const std::filesystem::path target = std::filesystem::path(to.checkpoints()) / point.folder.filename();
  const auto write = [&](const std::string& name, const std::string& bytes) {
    const auto file = vfs.create(target / name);
    file->write(bytes);
    file->sync();
    file->close();
  };
  vfs.make_directory(target);
  for (const FileRecord& record : point.manifest.files) write(record.name, read_verified(vfs, point.folder, record));
  const std::string manifest(kManifestName);
  write(manifest, vfs.read_file(point.folder / manifest));
  vfs.sync_directory(target);
  vfs.sync_directory(to.checkpoints());
}

// The ends of earlier stages, which the table compares with, then the start. The start's manifest pins them: they stay.
void copy_checkpoints(Vfs& vfs, const std::vector<SavedPoint>& points, const SavedPoint& start, const RunFolder& to) {
  for (const SavedPoint& point : points) {
    if (!point.position.stage_done || point.position.stage >= start.position.stage) continue;
    const std::string reason = damage(vfs, point);
    if (reason.empty()) {
      copy_checkpoint(vfs, point, to);
    } else {
      log_warning(str("fork: stage ", point.stage, " will be missing from the table, its checkpoint is damaged: ", reason));
    }
  }
  copy_checkpoint(vfs, start, to);
}

// The last stage whose factorisation has run, which wrote layers.csv.
std::optional<std::size_t> last_factorised(const Value& root, const Position& position) {
  std::optional<std::size_t> last;
  const std::size_t ready = static_cast<std::size_t>(position.stage) + (position.stage_ready ? 1 : 0);
  for (std::size_t i = 0; i < ready; ++i) {
    const Value* pass = root.at("stages").as_list().at(i).find("factorise");
    if (pass != nullptr && !pass->is_null()) last = i;
  }
  return last;
}

}  // namespace

void amend_run(Vfs& vfs, const RunFolder& folder, std::span<const std::string> overrides) {
  const RunLock lock(folder.path());
  const Value before = load_yaml(folder.resolved_config());
  const std::int64_t begun = begun_stages(CheckpointStore(vfs, folder.checkpoints()));
  const Value after = with_overrides(before, overrides, 0);
  for (const std::string& key : changed_keys(before, after)) {
    TESSERA_CHECK(!alters_the_past(key, begun), ConfigError, "resume: ", key, " cannot change in a run that has begun; ",
                  instead(vfs, folder, before, overrides));
  }
  write_file_atomically(vfs, folder.resolved_config(), to_yaml(after));
  append_to_log(folder, "resumed", overrides);
}

RunFolder fork_run(Vfs& vfs, const RunFolder& parent, const std::string& at, std::span<const std::string> overrides,
                   const std::string& runs) {
  const Value before = load_yaml(parent.resolved_config());
  const std::vector<SavedPoint> points = saved_points(vfs, parent);
  const SavedPoint& start = find_point(vfs, points, at);
  const Value after = with_overrides(before, overrides, finished_stages(start.position));
  check_fork(before, after, start.position);

  RunFolder folder = RunFolder::create(vfs, runs, after.at("name").as_string());
  const auto copy = [&](const std::string& from, const std::string& to) {
    if (vfs.exists(from)) write_file_atomically(vfs, to, vfs.read_file(from));
  };
  copy(parent.environment(), folder.environment());
  copy(parent.decisions(), folder.decisions());
  copy(parent.metrics(), folder.metrics());
  copy(parent.timing(), folder.timing());
  const auto factorised = last_factorised(before, start.position);
  if (factorised && factorised == last_factorised(before, points.back().position)) copy(parent.layers(), folder.layers());
  copy_checkpoints(vfs, points, start, folder);
  append_to_log(folder, str("forked from ", parent.path(), " at ", at), overrides);
  write_file_atomically(vfs, folder.config(), to_yaml(after));
  write_file_atomically(vfs, folder.resolved_config(), to_yaml(after));  // last: without it the folder is no run
  return folder;
}

}  // namespace tessera
