// Timings that ranks of a factorisation are chosen by, taken by several ranks of a run, each on a machine or GPU of its own.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compress/timing/veto.h"
#include "core/comm/communicator.h"
#include "train/experiment.h"
#include "train/run/rank_log.h"

namespace tessera {

// Collective. The lowest rank of each host or, on GPUs, of each GPU, in ascending order: two ranks that time at once on one
// would disturb each other.
std::vector<int> ranks_that_time(Communicator& ranks, const ExperimentConfig& config);

// A rank's share of the timings.
struct TimingShare {
  int rank = 0;
  std::vector<RankTiming> timings;
};

// Deals the layers of the timings out among `timers`, each layer with all its timings, those with the most multiply-adds first.
// The result is a list of rounds; in each round a rank times one layer at most.
std::vector<std::vector<TimingShare>> timing_rounds(std::span<const RankTiming> timings, std::span<const int> timers);

// A round as rank 0 tells it: layers by their structure and with what is frozen. Weights are left out, because no time depends
// on them.
std::string encode_round(std::span<const TimingShare> round, const TimingOptions& options);

// What a rank above 0 answers to it: the times of its share, or the error that it met, as read_answer() reads it.
std::string answer_to_round(const std::string& round, int rank, const ExperimentConfig& config, RankLog& log);
std::string encode_answer(const DecisionMap& times);
// Throws an error that the answer tells of, with the rank's number: OutOfMemoryError and ConfigError where it is one, else Error.
DecisionMap read_answer(const std::string& answer, int rank);

}  // namespace tessera
