// How a cell comes to its figures: from a run that is there already, whole or in part, from another's shared stages, or anew.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/io/vfs.h"
#include "train/reproduce/cell.h"
#include "train/run/session.h"

namespace tessera {

struct Way {
  enum class Kind { measure, resume, fork, train };
  Kind kind = Kind::train;
  std::string run = {};  // the cell's own to measure or resume, the parent of a fork
  std::string at = {};  // stage of the parent, at whose end a fork begins
  std::int64_t stages = 0;  // that need no training any more
};

// Below `runs` stand the folders of the table's runs, <cell>/<n>. A fork's parent is the run that shares the most stages.
Way find_way(Vfs& vfs, const Cell& cell, const std::string& runs);
// "resume PATH", "fork PATH at pretrain", "train": for people.
std::string way_text(const Way& way);

// Goes that way. The folder is a run that has ended where the outcome says finished. Throws what training throws.
struct CellRun {
  std::string folder;
  RunOutcome outcome = RunOutcome::finished;
};
CellRun run_cell(Vfs& vfs, const Cell& cell, const Way& way, const std::string& runs, const SessionOptions& options);

}  // namespace tessera
