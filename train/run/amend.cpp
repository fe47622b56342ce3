#include "train/run/amend.h"

#include <vector>

#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/checkpoint/run_lock.h"
#include "train/checkpoint/store.h"
#include "train/config/yaml.h"
#include "train/config/yaml_writer.h"
#include "train/experiment.h"
#include "train/run/broken_images.h"
#include "train/run/config_change.h"
#include "train/run/environment.h"
#include "train/run/fork_pruning.h"
#include "train/run/position.h"
#include "train/run/rank_leader.h"
#include "train/run/run_state.h"
#include "train/run/saved_point.h"

namespace tessera {
namespace {

// What to do instead of a refused change: a fork from the newest checkpoint that can take it, or a new run.
std::string instead(Vfs& vfs, const RunFolder& folder, const Value& before, std::span<const std::string> overrides) {
  std::string words;
  for (const std::string& text : overrides) words += str(' ', shell_word(text));
  const std::vector<SavedPoint> points = saved_points(vfs, folder);
  EpochLength epoch;  // of one data block, the same for every checkpoint
  for (auto point = points.rbegin(); point != points.rend(); ++point) {
    try {
      const Value after = with_overrides(before, overrides, finished_stages(point->position));
      check_fork(before, after, {point->position, point->teachers()});
      check_pruning_of_fork(vfs, *point, before, after, epoch);
      return str("start a new one from it with: tessera fork ", shell_word(folder.path()), " --at ", shell_word(point->label()),
                 words);
    } catch (const Error&) {  // an earlier checkpoint may take it
    }
  }
  return str("no checkpoint of it can take this either: train a new run, tessera train <experiment file>", words);
}

// The number of stages up to that of the newest checkpoint; 0 if there is none. Later stages may still change in length.
std::int64_t begun_stages(const CheckpointStore& store) {
  if (store.empty()) return 0;
  return read<Position>(store.load_latest().manifest.at("position")).stage + 1;
}

bool alters_the_past(const std::string& key, const Value& after, std::int64_t begun) {
  for (const std::string_view harmless : {"checkpoint.", "report.", "threads.loader"}) {
    if (key.starts_with(harmless)) return false;
  }
  if (key == "data.root") return false;  // the data must be the same at the new root, which its fingerprint tells
  if (key == "data.on_bad_image") return !skips_bad_images(after);  // the steps so far read no bad image
  // Checkpoints do not depend on device or threads. The resumed run reports that its bytes may differ.
  if (key == "device" || key == "threads.compute") return false;
  if (key.starts_with("stages[") && key.ends_with("].train")) return std::stoll(key.substr(7)) < begun;
  return true;
}

// Refuses a device that is absent, or that cannot do what the run needs, before the config is stored.
Value settled(const Value& resolved, Communicator& ranks) {
  ExperimentConfig config = parse_experiment(resolved).config;
  refuse_for_ranks(ranks, config);
  refuse_on_device(config);
  config.device = resolve_device(config.device).name();
  if (config.threads.compute == 0) config.threads.compute = resolve_compute_threads(RankLeader(ranks).compute_threads());
  return write(config);
}

}  // namespace

void amend_run(Vfs& vfs, const RunFolder& folder, std::span<const std::string> overrides, Communicator& ranks) {
  const RunLock lock(folder.path());
  // Parsed as an experiment, so that keys of later versions have their defaults on both sides.
  const Value before = parse_experiment(load_yaml(folder.resolved_config())).resolved;
  const std::int64_t begun = begun_stages(CheckpointStore(vfs, folder.checkpoints()));
  Value after = with_overrides(before, overrides, 0);
  for (const std::string& key : changed_keys(before, after)) {
    TESSERA_CHECK(!alters_the_past(key, after, begun), ConfigError, "resume: ", key, " cannot change in a run that has begun; ",
                  instead(vfs, folder, before, overrides));
  }
  after = settled(after, ranks);
  const bool asked =
      std::ranges::any_of(overrides, [](const std::string& text) { return text.starts_with("data.on_bad_image="); });
  std::vector<BrokenImage> left_out;
  if (asked) left_out = leave_out_broken_images(vfs, folder, before, after);
  write_file_atomically(vfs, folder.resolved_config(), to_yaml(after));
  append_overrides(folder, "resumed", overrides);
  for (const BrokenImage& image : left_out) {
    append_overrides(folder, str("goes on without ", image.path(after.at("data").at("root").as_string()), ": ", image.reason),
                     {});
  }
}

}  // namespace tessera
