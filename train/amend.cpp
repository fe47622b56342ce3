#include "train/amend.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/config/read.h"
#include "core/error.h"
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
    for (const Value::Entry& entry : value.as_map()) flatten(entry.value, path.empty() ? entry.key : path + "." + entry.key, leaves);
  } else if (value.is_list() && std::any_of(value.as_list().begin(), value.as_list().end(), [](const Value& v) { return v.is_map(); })) {
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

// The stage that is under way or comes next: stages behind it may still be changed in length.
std::int64_t begun_stages(const CheckpointStore& store) {
  if (store.empty()) return 0;
  const Position position = read<Position>(store.load_latest().manifest.at("position"));
  return position.stage + 1;
}

bool alters_the_past(const std::string& key, std::int64_t begun) {
  for (const std::string_view harmless : {"checkpoint.", "report.", "threads.loader"}) {
    if (key.starts_with(harmless)) return false;
  }
  if (key.starts_with("stages[") && key.ends_with("].train")) return std::stoll(key.substr(7)) < begun;
  return true;
}

Value with_overrides(const Value& root, std::span<const std::string> overrides) {
  Value changed = root;
  for (const std::string& text : overrides) apply_override(changed, text);
  return parse_experiment(std::move(changed)).resolved;
}

Checkpoint find_checkpoint(const CheckpointStore& store, const std::string& at) {
  std::string known;
  for (const std::int64_t step : store.steps()) {
    Checkpoint checkpoint = store.load(step);
    const bool stage_end = read<Position>(checkpoint.manifest.at("position")).stage_done;
    const std::string stage = checkpoint.manifest.at("stage_name").as_string();
    if (at == std::to_string(step) || (stage_end && at == stage)) return checkpoint;
    known += str(' ', step, stage_end ? "=" + stage : std::string());
  }
  throw ConfigError(str("fork: no checkpoint '", at, "'; there are:", known));
}

}  // namespace

void amend_run(Vfs& vfs, const RunFolder& folder, std::span<const std::string> overrides) {
  const Value before = load_yaml(folder.resolved_config());
  const Value after = with_overrides(before, overrides);
  const CheckpointStore store(vfs, folder.checkpoints());
  const std::int64_t begun = begun_stages(store);
  for (const std::string& key : changed_keys(before, after)) {
    TESSERA_CHECK(!alters_the_past(key, begun), ConfigError, "resume: ", key,
                  " cannot change in a run that has begun; start a new one from it with: tessera fork ", folder.path(),
                  " --at <stage or step> ", key, "=...");
  }
  write_file_atomically(vfs, folder.resolved_config(), to_yaml(after));
  std::ofstream log(folder.log(), std::ios::app);
  for (const std::string& text : overrides) log << "resumed with " << text << '\n';
  TESSERA_CHECK(log.good(), IoError, "cannot write to ", folder.log());
}

RunFolder fork_run(Vfs& vfs, const RunFolder& parent, const std::string& at, std::span<const std::string> overrides,
                   const std::string& runs) {
  const Checkpoint start = find_checkpoint(CheckpointStore(vfs, parent.checkpoints()), at);
  const Value before = load_yaml(parent.resolved_config());
  const Value resolved = with_overrides(before, overrides);
  for (const std::string& key : changed_keys(before, resolved)) {
    TESSERA_CHECK(!key.starts_with("model."), ConfigError, "fork: ", key,
                  " cannot change: the network comes from the checkpoint; train a new run for another network");
  }
  RunFolder folder = RunFolder::create(vfs, runs, resolved.at("name").as_string());
  for (const auto& [from, to] : {std::pair(parent.environment(), folder.environment()), {parent.decisions(), folder.decisions()},
                                 {parent.metrics(), folder.metrics()}, {parent.timing(), folder.timing()}}) {
    write_file_atomically(vfs, to, vfs.read_file(from));
  }
  write_file_atomically(vfs, folder.config(), to_yaml(resolved));
  write_file_atomically(vfs, folder.resolved_config(), to_yaml(resolved));
  std::filesystem::copy(start.folder, std::filesystem::path(folder.checkpoints()) / start.folder.filename(),
                        std::filesystem::copy_options::recursive);
  return folder;
}

}  // namespace tessera
