// Takes the times of several pieces of work in one process: interleaved, so that the machine's drift hits all alike.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/device/device.h"

namespace tessera {

// One of several pieces of work that are timed in turn.
struct Contender {
  std::function<void()> run;
  std::function<void()> prepare = {};  // before each run, not timed; may be empty
};

struct Turns {
  Device device = {};
  int warm_up = 0;  // rounds that are not kept: algorithms are chosen in them
  std::int64_t rounds = 1;  // of a batch
  std::int64_t batches = 1;
};

// Rounds on the CPU in which threads waited for a core, of all that are kept.
struct Disturbance {
  std::int64_t rounds = 0, of = 0;

  bool much() const;  // more than a quarter of them
  Disturbance& operator+=(const Disturbance& other) {
    rounds += other.rounds;
    of += other.of;
    return *this;
  }
};

// Logs a warning that names what was timed, where there is much.
void warn_of(const Disturbance& disturbance, const std::string& what);

struct Timings {
  std::vector<std::vector<double>> ms;  // by contender: milliseconds of a run in each round, batch after batch
  Disturbance disturbance = {};
  bool replayed = false;  // on a GPU: runs were recorded as graphs, and replaying those was timed
};

// Each round is in an order of its own (core/device/turn_order.h). Between two batches all run in turn, at least one round, until
// kBetweenSeconds have passed with what prepares them included. These rounds are not kept: the batches lie apart in time, and
// none begins on caches that other work has filled.
//
// On the CPU each reading of the clock is one run. Where a thread waited for a core (core/cpu/core_wait.h) for more than a
// twentieth of a reading, and for more than 0.2 ms, the round is read again, up to three times, and the quietest one is kept; no
// more rounds in all are read again than are kept, and no more than a quarter of these where none gets quiet. Two threads that
// have a core and a half between them finish together with the slower one: a layer of 2 ms and one of 6 ms then both take some
// time slices of the system, and look alike.
//
// On a GPU every contender runs as it is in the warm-up; then as many runs as make a reading of kReadingSeconds are recorded as
// one graph (core/device/device_work.h), and a reading is one replay of it: work that the device finds in its queue, as in a
// captured training step. Where a contender cannot be recorded, which is warned about, a reading is as many runs as they are, of
// all contenders, and the host that queues them may be what is timed.
Timings time_in_turn(std::span<const Contender> contenders, const Turns& turns);

inline constexpr double kBetweenSeconds = 25e-3;
inline constexpr double kReadingSeconds = 1e-3;  // events tell 0.5 us apart, and a graph's launch takes some 5 us
inline constexpr std::int64_t kMostRuns = 1000;

// How many runs make a reading. Calls `seconds_of(n)`, which gives the time of n runs, with rising n from 1 on, until that is
// kReadingSeconds or n is kMostRuns.
std::int64_t runs_per_reading(const std::function<double(std::int64_t)>& seconds_of);

}  // namespace tessera
