// Which arms of a table are timed with each other: those that are compared, and whose networks read inputs of one shape.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/config/read.h"
#include "train/reproduce/table_view.h"

namespace tessera {

// Appends a problem, at its key of the table file, for each arm that names an arm of another input shape in `against`. Arms
// whose experiment could not be read are passed over.
void find_incomparable(const TableFile& table, std::span<const ArmChoice> arms, std::vector<ConfigProblem>& problems);

// Networks of one input shape that are timed in turn: speed-ups are over the first.
struct TimedGroup {
  std::vector<std::size_t> rows;  // indices of rows: first the one that speed-ups are over, then the others in order
  std::string key;  // hash of the networks of the rows' first seeds: ArmTimes::networks
};

// Groups of the rows that have a network. A row is in the group of the row that it is compared with, where that one has a
// network and reads the same input. Otherwise it is the first of a group of its own, with the rows that are compared with it. A
// row that is compared with an arm while others are compared with it is in two groups.
std::vector<TimedGroup> timed_groups(std::span<const ArmRow> rows);

}  // namespace tessera
