// What rank 0 of a run in several processes tells the others between the steps that all take together, and what ranks compare.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/comm/communicator.h"
#include "core/config/value.h"
#include "core/device/decisions.h"
#include "core/nn/module.h"
#include "train/checkpoint/store.h"

namespace tessera {

// What the text of a message is: `threads` nothing; `run` JSON, the resolved `config` and in `logs` the path of each rank's log;
// `stage` a checkpoint of where the stage begins; `decisions` choices by a clock; `evaluated` nothing: rank 0 has evaluated its
// batches, and chosen for all; `finished` and `stopped` nothing; `times` a round of timings that a factorisation's ranks are
// chosen by (rank_timings.h).
enum class RankMessageKind : char {
  threads = 't',
  run = 'r',
  stage = 's',
  decisions = 'd',
  evaluated = 'v',
  finished = 'f',
  stopped = 'e',
  times = 'l'
};

struct RankMessage {
  RankMessageKind kind;
  std::string text;
};

// The bits of the flags that ranks exchange before each step.
inline constexpr std::uint64_t kStopFlag = 1;  // somebody asks for a stop
inline constexpr std::uint64_t kDecisionsFlag = 2;  // rank 0 tells of decisions next
inline constexpr std::uint64_t kSaveFlag = 4;  // rank 0 saves: all gather what it needs, and exchange flags again
inline constexpr std::uint64_t kCompareFlag = 8;  // rank 0 asks for a comparison before this step

void tell(Communicator& ranks, RankMessageKind kind, std::string_view text = {});  // by rank 0
RankMessage hear(Communicator& ranks);  // by the others
std::string hear(Communicator& ranks, RankMessageKind expected);  // throws InternalError where the message is of another kind

// The manifest and the parts, without files' hashes: they stay in memory.
std::string encode_checkpoint(const Value& manifest, const std::map<std::string, State>& parts);
// The same with decisions, which recorded_decisions() reads in the manifest.
std::string encode_checkpoint(Value manifest, const std::map<std::string, State>& parts, const DecisionMap& decisions);
Checkpoint decode_checkpoint(std::string_view text);

std::string encode_decisions(const DecisionMap& decisions);
DecisionMap decode_decisions(std::string_view text);

// Compute threads of each of the ranks where the config says auto: a machine's processors divided by the number of ranks that
// share them, of the machine where that is fewest.
std::int64_t fair_threads(Communicator& ranks);

// For each different text the first of the ranks that give it.
std::vector<int> first_ranks(Communicator& ranks, std::string_view text);

// Where values differ, throws the same Error on every rank. It names the first rank and key whose value is not rank 0's. `mine`
// is a map with the same keys everywhere; `what` is what they belong to: "the program or machine".
void compare_keys(Communicator& ranks, const Value& mine, std::string_view what);
// The same of a network's parameters, masks and buffers: names, types, shapes and bytes.
void compare_models(Communicator& ranks, Module& model);
// The same of the tensors of parts of a checkpoint, and what stands beside them.
void compare_parts(Communicator& ranks, const std::map<std::string, State>& parts);

}  // namespace tessera
