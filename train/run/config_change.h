// Changes to the resolved config of a run: how overrides reach its stages, which keys they change, and which of them a run can
// go on with from a checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "train/run/position.h"

namespace tessera {

// Stages that are over where a run stands.
std::int64_t finished_stages(const Position& position);

// The resolved config `before` with overrides. A training key of the top level (training_keys()) is set or dropped in every stage
// from index `open` on. Throws ConfigError as parse_experiment does.
Value with_overrides(const Value& before, std::span<const std::string> overrides, std::int64_t open);

using Leaves = std::map<std::string, Value>;

// Dotted key -> value. Lists that hold blocks are entered, other lists are values.
Leaves config_leaves(const Value& config);

struct KeyChange {
  std::string key;
  Value before;  // null = absent
  Value after;

  void fields(Fields& f);
};
// Changed keys of `before` in its order, then the keys that only `after` has.
std::vector<KeyChange> changes(const Leaves& before, const Leaves& after);

// Dotted keys whose values differ.
std::vector<std::string> changed_keys(const Value& before, const Value& after);

// Where a fork begins: the position of a checkpoint, and the stages whose networks it keeps for later ones (teachers.h).
struct ForkPoint {
  const Position& position;
  std::vector<std::string> teachers;
};

// Throws ConfigError naming the key and the reason when a run cannot go on from there with the changed settings: network, seed,
// data, stages that are over, teachers that the checkpoint does not keep, and inside a stage whatever its saved state depends on.
void check_fork(const Value& before, const Value& after, const ForkPoint& point);

}  // namespace tessera
