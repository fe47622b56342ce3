// Sides of a comparison timed in turns in one process, so that the machine's drift hits all alike; before, each of them alone, so
// that it shows whether turns slow one of them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compress/timing/summary.h"
#include "core/config/value.h"
#include "core/tensor.h"

namespace tessera::bench {

struct Contestant {
  std::string name;
  std::function<void()> run;
  std::function<void()> prepare = {};  // before every run, not timed
  std::function<Tensor()> result = {};  // what run computed, where sides are to agree
};

double steady_seconds();

inline constexpr std::int64_t kTurnsAlone = 3;

struct TurnOptions {
  std::int64_t rounds = 30;
  double seconds = 2e-3;  // a turn counts calls until about this much was timed by the slowest side
  double (*clock)() = steady_seconds;
  Device device = {};  // a GPU: what its stream takes for a call, by events; `clock` is not read
  std::int64_t alone = kTurnsAlone;  // turns of each side in a row, before the rounds
};

// Milliseconds per call of one side.
struct Samples {
  std::vector<double> rounds;  // one for each round
  std::vector<double> alone = {};  // of turns one behind the other, before the rounds; none where they were not taken

  double median() const { return quantile(rounds, 0.5); }
  bool operator==(const Samples&) const = default;
};

// Samples of each side: first, of one side after the other, what `turn` gives for it `alone` times in a row, but no more often
// than there are rounds, and never for the only side; then what it gives in each round. The order is that of turn_order(): a side
// finds the caches as the one before it left them, and none is to follow the same one always.
std::vector<Samples> interleave(std::size_t sides, std::int64_t rounds, std::int64_t alone,
                                const std::function<double(std::size_t side)>& turn);

// The same of contestants. Two warm-up calls each say how often a turn repeats it. As many calls as it counts come before them in
// a turn: memory of 25 MB is back in the caches after some four of them only.
std::vector<Samples> time_in_turns(std::span<const Contestant> contestants, const TurnOptions& options);

// The same of sides that time themselves, in processes of their own or in this one: they give the milliseconds of each of `count`
// calls. A turn is `calls` and a first one that is not counted; its sample is their median.
using SelfTimed = std::function<std::vector<double>(std::int64_t count)>;
std::vector<Samples> time_in_turns(std::span<const SelfTimed> sides, std::int64_t rounds, std::int64_t calls);
SelfTimed self_timed(Contestant contestant);  // on the CPU
// Calls that take the slowest of them about 200 ms; 1 to 50.
std::int64_t calls_per_turn(std::span<const SelfTimed> sides);

// Indices of what is at most `share` times the lowest of `medians`, the lowest first, `most` of them at most. INFINITY stands for
// what failed: it is never chosen.
std::vector<std::size_t> lowest(std::span<const double> medians, double share, std::size_t most);

// numerator[i] / denominator[i].
std::vector<double> ratios(const std::vector<double>& numerator, const std::vector<double>& denominator);
std::vector<double> ratios(const Samples& numerator, const Samples& denominator);

// The times of a side as a result line has them: {median, p10, p90, rounds: [...], alone}. `rounds` are in their order, to four
// digits; `alone` is the median of the turns alone, missing where there were none.
Value to_value(const Samples& samples);

// {name, ms}: a side as a result line has it.
Value timed(const std::string& name, const Samples& samples);

// How two sides compare: {median, p10, p90} of the rounds' ratios, and `of_medians`, the ratio of the two medians. Where the
// machine changes its pace from round to round the two are apart.
Value ratio_value(const std::vector<double>& numerator, const std::vector<double>& denominator);
Value ratio_value(const Samples& numerator, const Samples& denominator);

// Index of the lowest median. `samples` must not be empty.
std::size_t fastest(std::span<const Samples> samples);

// Contestants whose median in a short run is within a tenth of the best, the fastest first; the medians of all as rows for the
// result line.
struct Sweep {
  std::vector<Contestant> finalists;
  Value rows;  // [{name, ms}, ...]
};
Sweep sweep(std::span<const Contestant> contestants, TurnOptions options);

// Runs every contestant that has a result on outputs filled with NaN by `spoil` and compares with the first's: throws
// NumericError naming the two, when the largest difference is above `tolerance` of the largest value.
void check_agreement(std::span<const Contestant> contestants, const std::function<void()>& spoil, double tolerance);

}  // namespace tessera::bench
