// Times a Tucker-2 convolution against the best dense convolution that computes the same function: ours, or oneDNN called
// directly, Winograd included; inference, in which either side keeps what it derives from its weights, and training (forward and
// both backwards).
// Exit codes: 0 measured, 1 the comparison is void (results differ, rival crippled), 2 bad arguments.
#include <fmt/format.h>

#include "bench/cases/dense_cases.h"
#include "bench/cases/tucker_cases.h"
#include "bench/result_lines.h"
#include "core/cpu/fma_peak.h"
#include "train/run/environment.h"

namespace tessera::bench {
namespace {

constexpr ConvShape kShape{8, 256, 256, 14, 3};

struct Target {
  Tucker2Ranks ranks;
  double forward, training;  // least ratio; 0 where none is set
};
constexpr Target kTargets[]{{{64, 64}, 5.0, 4.5}, {{32, 32}, 0, 0}, {{128, 128}, 0, 0}};

void print_timed(const char* indent, const Value& row) {
  fmt::print("{}{:<70} {:8.3f} ms {:5.0f} GF/s\n", indent, row.at("name").as_string(), row.at("ms").at("median").as_double(),
             row.at("gflops").as_double());
}

void print_row(const Value& row, double target) {
  const Value& ratio = row.at("ratio");
  const double median = ratio.at("median").as_double();
  fmt::print("ranks {}/{} {}: {:.2f}x ({:.2f}-{:.2f}) the rival, {:.2f}x dense in blocked layout; {:.2f} times fewer FLOPs{}\n",
             row.at("rank_out").as_int(), row.at("rank_in").as_int(), row.at("phase").as_string(), median,
             ratio.at("p10").as_double(), ratio.at("p90").as_double(), row.at("blocked_ratio").at("median").as_double(),
             row.at("flop_ratio").as_double(),
             target > 0 ? fmt::format("; target {}x: {}", target, median >= target ? "met" : "missed") : "");
  for (const char* side : {"rival", "other_dense", "blocked_dense", "tucker"}) print_timed("  ", row.at(side));
  for (const Value& part : row.at("parts").as_list()) print_timed("    ", part);
  std::fflush(stdout);
}

void measure(const CommonOptions& options) {
  set_compute_threads(options.threads);
  const Value surroundings = describe_surroundings(options.threads);
  const double peak = cpu::fma_peak_gflops(static_cast<int>(options.threads));
  fmt::print("multiply-add peak {:.0f} GFLOP/s, oneDNN's 1024^3 product {:.0f}\n", peak, guarded_rival_gflops(peak));
  Value::List rows;
  for (const Target& target : kTargets) {
    const TuckerSides sides = make_sides(kShape, target.ranks);
    for (const Phase phase : {Phase::inference, Phase::training}) {
      const double least = phase == Phase::inference ? target.forward : target.training;
      Value& row = rows.emplace_back(measure_phase(sides, phase, {.rounds = options.rounds}));
      print_row(row, least);
      if (least > 0) row.set("target", least);
      row.set("fma_peak_gflops", peak);
    }
  }
  for (const Value& row : rows) publish(options, surroundings, row);  // all or none: a run that is cut leaves no part of a table
}

int run_program(const std::vector<std::string_view>& words) {
  CommonOptions options{.results = TESSERA_BENCH_DIR "/results/tucker_bench.jsonl"};
  Arguments arguments("tucker_bench", "times a Tucker-2 convolution against the best dense one");
  add_common(arguments, options);
  return run_benchmark(arguments, words, [&] { measure(options); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
