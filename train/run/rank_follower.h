// A rank above 0 of a run in several processes: it takes the steps that rank 0 takes (rank_leader.h) and writes nothing but its
// log.
#pragma once

#include "core/comm/communicator.h"
#include "train/run/rank_log.h"
#include "train/run/session.h"

namespace tessera {

// Follows rank 0 until it says how the run ended. The config, the network and where to go on from are rank 0's; the data is read
// here, and must be the same. `stop` stops all ranks at their next step. `log` is opened where rank 0 says. Throws what training
// throws, and Error where the ranks differ.
RunOutcome follow_rank_0(Communicator& ranks, const StopRequest& stop, RankLog& log);

}  // namespace tessera
