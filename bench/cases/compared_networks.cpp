#include "bench/cases/compared_networks.h"

#include <fmt/format.h>

#include <cmath>

#include "bench/difference.h"
#include "bench/result_lines.h"
#include "core/rng.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr double kTolerance = 1e-3;  // Winograd and the order of sums, through dozens of layers

}  // namespace

std::int64_t mask_randomly(Parameter& weight, const std::string& path, const Pattern& pattern, double density) {
  const Tensor scores = Tensor::empty(weight.value().shape());
  fill_uniform(scores, RngStream(1, "bench", path), 0, 1);
  const std::int64_t kept = std::llround(density * static_cast<double>(scores.numel()));
  weight.set_mask(pattern.project({&scores, 1}, kept).front());
  return kept;
}

Measured measure_in_turn(const Compared& of, std::int64_t rounds) {
  TESSERA_CHECK(of.difference <= kTolerance, NumericError, of.what, ": differs from the dense network of the same function by ",
                of.difference, " of the largest value; ", kTolerance, " is allowed");
  return {time_in_turns(of.sides, rounds, calls_per_turn(of.sides)), of.difference};
}

Measured measure_steps(const ComparedSteps& of, std::int64_t rounds) {
  TrainWorkload ours(of.config, of.compressed);
  const Difference difference = difference_of(TrainWorkload(of.config, of.dense).run(of.losses).loss, ours.run(of.losses).loss);
  TrainWorkload dense(of.config);
  return measure_in_turn(
      {of.what,
       difference.relative(),
       {[&](std::int64_t count) { return ours.run(count).ms; }, [&](std::int64_t count) { return dense.run(count).ms; }}},
      rounds);
}

void set_measured(Value& row, const std::string& compressed, const Measured& measured, double target) {
  const Samples &ours = measured.samples[0], &dense = measured.samples[1];
  row.set("rounds", static_cast<std::int64_t>(ours.rounds.size()));
  row.set("factored", timed(compressed, ours));
  row.set("rival", timed("tessera, dense", dense));
  row.set("ratio", ratio_value(dense, ours));
  row.set("target", target);
  row.set("agreement", measured.agreement);
}

void print_measured(const std::string& what, const Value& row) {
  const auto ms = [&](const char* side) { return row.at(side).at("ms").at("median").as_double(); };
  const Value& ratio = row.at("ratio");
  const double target = row.at("target").as_double();
  fmt::print("{}: {:.3f} ms, dense {:.3f} ms, {}; target {}x: {}\n", what, ms("factored"), ms("rival"), ratio_text(ratio), target,
             counted(ratio) >= target ? "met" : "missed");
  std::fflush(stdout);
}

}  // namespace tessera::bench
