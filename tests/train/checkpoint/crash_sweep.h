// Cuts the power at every operation of a series of saves and looks at what is left. A saver is the real store over a file system
// that may be sabotaged; the sweep returns what went wrong, so that a test can ask for nothing from the real one and for
// something from each sabotaged one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/io/vfs.h"

namespace tessera {

// The file system as the saver sees it.
using Sabotage = std::function<std::unique_ptr<Vfs>(Vfs&)>;

struct CrashSweep {
  std::vector<std::string> violations;  // "save of step 3, before operation 17 (rename step-00000003), nothing: ..."
  int operations = 0;  // at which the power was cut
  int points = 0;  // crash images examined; equal ones at one operation count once
};

// Opens and saves with keep = 2: plain saves, one pinned and later unpinned, one step twice. Then, from what crashes of the last
// save left, opens again, which removes it, and saves, and is cut short in turn. Invariants: store_invariants.h. Ends early with
// a violation that holds the text `until`.
CrashSweep sweep_crashes(const Sabotage& sabotage, const std::string& until = "nothing ends it");

}  // namespace tessera
