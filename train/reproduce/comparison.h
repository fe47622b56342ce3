// Which arms of a table are timed with each other: those that are compared, and whose networks read inputs of one shape.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/config/read.h"
#include "train/reproduce/table_view.h"

namespace tessera {

// Appends, at keys of the table file, arms that name one of another input in `against`. Arms whose experiment could not be read
// are passed over.
void find_incomparable(const TableFile& table, std::span<const ArmChoice> arms, std::vector<ConfigProblem>& problems);

// Networks of one input shape that are timed in turn: speed-ups are over the first.
struct TimedGroup {
  std::vector<std::size_t> rows;  // places of their arms, in the rows' order behind the first
  std::string key;  // hash of the networks that the rows' first seeds have: what ArmTimes are of
};

// Of the rows that have a network: each with the one that it is compared with, where that has a network and reads the same input,
// else first in a group of its own, with the others that are compared with it. One that is compared with an arm while others are
// compared with it stands in two groups.
std::vector<TimedGroup> timed_groups(std::span<const ArmRow> rows);

}  // namespace tessera
