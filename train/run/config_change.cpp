#include "train/run/config_change.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "core/support/error.h"
#include "train/config/overrides.h"
#include "train/experiment.h"
#include "train/run/broken_images.h"

namespace tessera {
namespace {

void flatten(const Value& value, const std::string& path, Leaves& leaves) {
  if (value.is_map()) {
    for (const Value::Entry& entry : value.as_map())
      flatten(entry.value, path.empty() ? entry.key : path + "." + entry.key, leaves);
  } else if (value.is_list() &&
             std::any_of(value.as_list().begin(), value.as_list().end(), [](const Value& v) { return v.is_map(); })) {
    for (std::size_t i = 0; i < value.as_list().size(); ++i) flatten(value.as_list()[i], str(path, '[', i, ']'), leaves);
  } else {
    leaves[path] = value;
  }
}

bool is_training_override(std::string_view path) {
  const auto keys = training_keys();
  return std::find(keys.begin(), keys.end(), path.substr(0, path.find_first_of(".[="))) != keys.end();
}

// In a resolved config each stage has its own training keys, so a key given for the run is set in each stage from `open` on. It
// is not set at the top, because earlier stages that lack the key would then take it from there.
void set_in_stages(Value& root, const std::string& text, std::size_t open) {
  for (std::size_t i = open; i < root.at("stages").as_list().size(); ++i) apply_override(root, str("stages[", i, "].", text));
}

// The key is dropped at the top as well, because the stages would take it from there again. A stage may lack the key.
void drop_in_stages(Value& root, const std::string& path, std::size_t open) {
  apply_override(root, "~" + path);
  for (std::size_t i = open; i < root.at("stages").as_list().size(); ++i) {
    try {
      apply_override(root, str("~stages[", i, "].", path));
    } catch (const ConfigError&) {
    }
  }
}

bool within(const std::string& key, const std::string& block) {
  return key.starts_with(block) && (key.size() == block.size() || key[block.size()] == '.' || key[block.size()] == '[');
}

bool within_any(const std::string& key, std::initializer_list<std::string> blocks) {
  return std::any_of(blocks.begin(), blocks.end(), [&](const std::string& block) { return within(key, block); });
}

// With momentum 0 the optimiser keeps no tensor per weight, so its saved state fits no config with momentum, nor the reverse.
bool momentum_appears_or_ends(const Value& before, const Value& after, std::size_t stage) {
  const auto kept = [stage](const Value& root) {
    const Value* momentum = root.at("stages").as_list()[stage].at("optimizer").find("momentum");
    return momentum != nullptr && momentum->as_double() > 0;
  };
  return kept(before) != kept(after);
}

// The stage that `key` newly names as a teacher, if it ended before the checkpoint and the checkpoint does not hold it; else "".
// At the end of the teacher's own stage, the teacher is the checkpoint's network.
std::string lost_teacher(const std::string& key, const Value& before, const Value& after, const ForkPoint& point) {
  if (!key.starts_with("stages[") || !key.ends_with(".distill.from")) return "";
  const Value& stage = after.at("stages").as_list().at(static_cast<std::size_t>(std::stoll(key.substr(7))));
  const Value* const distill = stage.find("distill");
  if (distill == nullptr) return "";
  const std::string& teacher = distill->at("from").as_string();
  const Value::List& stages = before.at("stages").as_list();
  const auto found = std::ranges::find_if(stages, [&](const Value& each) { return each.at("name").as_string() == teacher; });
  const bool over = found - stages.begin() < point.position.stage;
  return over && std::ranges::find(point.teachers, teacher) == point.teachers.end() ? teacher : "";
}

bool appears_or_ends(const char* block, const Value& before, const Value& after, std::size_t stage) {
  const auto has = [&](const Value& root) { return root.at("stages").as_list()[stage].find(block) != nullptr; };
  return has(before) != has(after);
}

// Why a fork at `point` cannot take another value of `key`; empty if it can.
std::string why_fixed(const std::string& key, const Value& before, const Value& after, const ForkPoint& point) {
  const Position& position = point.position;
  if (within(key, "model")) return "the network comes from the checkpoint; train a new run for another network";
  if (key == "seed") return "it drew the data, its split and its order; train a new run for another seed";
  const bool sets_steps = within_any(key, {"data.batch", "data.drop_last"});
  if (key == "data.on_bad_image" && skips_bad_images(after))
    return "resume the run with it, which keeps the places of bad images, and fork then";
  if (within(key, "data") && !sets_steps && !within(key, "data.augment") && key != "data.root") {
    return "the checkpoint was trained on this data; train a new run for other data";
  }
  for (std::int64_t stage = 0; stage < finished_stages(position); ++stage) {
    if (within(key, str("stages[", stage, ']'))) return "this stage is over at the fork; fork from an earlier checkpoint";
  }
  if (const std::string teacher = lost_teacher(key, before, after, point); !teacher.empty()) {
    return str("the checkpoint does not hold the network of stage ", teacher, "; fork at its end");
  }
  if (position.stage_done) return "";
  if (sets_steps) return "the fork is in the middle of a stage, whose steps it counts; fork at the end of a stage";
  const std::string stage = str("stages[", position.stage, "].");
  const bool rho = within_any(key, {stage + "admm.rho", stage + "admm.rho_end", stage + "admm.balance"});
  const bool sparsity = within(key, stage + "prune.sparsity");
  const auto index = static_cast<std::size_t>(position.stage);
  // A checkpoint does not save the weight and temperature of distillation, so they may change.
  const bool distills =
      within(key, stage + "distill") && (key == stage + "distill.from" || appears_or_ends("distill", before, after, index));
  const bool moves = within_any(key, {stage + "rigl.every", stage + "rigl.end", stage + "rigl.fraction"}) &&
                     !appears_or_ends("rigl", before, after, index);
  const bool block =
      within_any(key, {stage + "optimizer.name", stage + "ema", stage + "power_sgd", stage + "train", stage + "factorise",
                       stage + "admm", stage + "prune", stage + "rigl", stage + "shrink", stage + "sparsify"});
  const bool state = distills || (block && !rho && !sparsity && !moves);
  const bool slots = key == stage + "optimizer.momentum" && momentum_appears_or_ends(before, after, index);
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

}  // namespace

std::int64_t finished_stages(const Position& position) { return position.stage + (position.stage_done ? 1 : 0); }

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

Leaves config_leaves(const Value& config) {
  Leaves leaves;
  flatten(config, "", leaves);
  return leaves;
}

void KeyChange::fields(Fields& f) {
  f.add("key", key, {.help = "dotted"});
  f.add("a", before, {.help = "null = absent"});
  f.add("b", after, {.help = "null = absent"});
}

// Compares values as text, so that 1 and 1.0 differ.
std::vector<KeyChange> changes(const Leaves& before, const Leaves& after) {
  std::vector<KeyChange> found;
  for (const auto& [key, value] : before) {
    const auto now = after.find(key);
    if (now == after.end()) {
      found.push_back({key, value, {}});
    } else if (to_json(now->second) != to_json(value)) {
      found.push_back({key, value, now->second});
    }
  }
  for (const auto& [key, value] : after) {
    if (!before.contains(key)) found.push_back({key, {}, value});
  }
  return found;
}

std::vector<std::string> changed_keys(const Value& before, const Value& after) {
  std::vector<std::string> keys;
  for (KeyChange& change : changes(config_leaves(before), config_leaves(after))) keys.push_back(std::move(change.key));
  return keys;
}

void check_fork(const Value& before, const Value& after, const ForkPoint& point) {
  const Position& position = point.position;
  check_stage_order(before, after, position.stage);
  for (const std::string& key : changed_keys(before, after)) {
    const std::string reason = why_fixed(key, before, after, point);
    TESSERA_CHECK(reason.empty(), ConfigError, "fork: ", key, " cannot change: ", reason);
  }
  TESSERA_CHECK(finished_stages(position) < static_cast<std::int64_t>(after.at("stages").as_list().size()), ConfigError,
                "fork: no stage is left to train after this checkpoint; fork from an earlier one");
}

}  // namespace tessera
