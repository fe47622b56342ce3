// The arms' networks on the clock, in turn.
#pragma once

#include <functional>
#include <string>

#include "train/reproduce/table_plan.h"

namespace tessera {

// Times one network of each arm, that of the first seed with a result, at each batch of the table, and appends the times to the
// results. Networks that are compared are timed in turn, on inputs of their shape; in decode, on sequences of their length. Does
// nothing where these networks have their times already. `say` is told what is timed. Throws IoError when the run of one of the
// networks is no longer there, Stopped between two batches.
void time_arms(Vfs& vfs, TablePlan& plan, const StopRequest& stop, const std::function<void(const std::string&)>& say);

}  // namespace tessera
