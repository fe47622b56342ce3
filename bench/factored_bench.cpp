// Times factored layers against the best dense layer that computes the same function: ours, or oneDNN called directly, Winograd
// included; inference, in which either side keeps what it derives from its weights, and training (forward and both backwards).
// Exit codes: 0 measured, 1 the comparison is void (results differ, rival crippled), 2 bad arguments.
#include <fmt/format.h>

#include "bench/cases/dense_cases.h"
#include "bench/cases/factored_cases.h"
#include "bench/result_lines.h"
#include "core/cpu/fma_peak.h"
#include "train/run/environment.h"

namespace tessera::bench {
namespace {

struct Target {
  FactoredCase of;
  double forward, training;  // least ratio; 0 where none is set
};

std::vector<Target> targets() {
  const ConvShape conv{8, 256, 256, 14, 3};
  const auto tucker2 = [&](std::int64_t rank) { return FactoredCase{"tucker2", {{"out", rank}, {"in", rank}}, conv}; };
  const auto svd = [](std::int64_t rows) { return FactoredCase{"svd", {{"rank", 128}}, LinearShape{rows, 1024, 1024}}; };
  const std::vector<std::int64_t> modes{4, 8, 8, 4};
  return {{tucker2(64), 5.0, 4.5},
          {tucker2(32), 0, 0},
          {tucker2(128), 0, 0},
          // A quarter of the dense layer's multiply-adds.
          {tucker2(102), 2.6, 2.4},
          {{"spatial_svd", {{"rank", 96}}, conv}, 1.8, 1.7},
          {{"tt", {{"r1", 16}, {"r2", 102}, {"r3", 102}, {"r4", 16}}, conv}, 1.5, 1.4},
          {{"cp", {{"rank", 284}}, conv}, 1.2, 1.1},
          {svd(1), 2.3, 0},
          {svd(32), 3.2, 0},
          {svd(512), 3.4, 0},
          {{"tt", {{"r1", 4}, {"r2", 4}, {"r3", 4}}, LinearShape{64, 1024, 1024}, ModesConfig{.out = modes, .in = modes}}, 2.0, 2.0}};
}

void print_timed(const char* indent, const Value& row) {
  fmt::print("{}{:<70} {:8.3f} ms {:5.0f} GF/s\n", indent, row.at("name").as_string(), row.at("ms").at("median").as_double(),
             row.at("gflops").as_double());
}

void print_row(const Value& row, double target) {
  const Value& ratio = row.at("ratio");
  const double median = ratio.at("median").as_double();
  fmt::print("{} of {}, {}, {}: {:.2f}x ({:.2f}-{:.2f}) the rival; {:.2f} times fewer FLOPs{}\n", row.at("format").as_string(),
             row.at("shape").as_string(), row.at("ranks").as_string(), row.at("phase").as_string(), median,
             ratio.at("p10").as_double(), ratio.at("p90").as_double(), row.at("flop_ratio").as_double(),
             target > 0 ? fmt::format("; target {}x: {}", target, median >= target ? "met" : "missed") : "");
  for (const char* side : {"rival", "other_dense", "blocked_dense", "factored"}) {
    if (const Value* timed = row.find(side)) print_timed("  ", *timed);
  }
  for (const Value& part : row.at("parts").as_list()) print_timed("    ", part);
  std::fflush(stdout);
}

void measure(const CommonOptions& options) {
  set_compute_threads(options.threads);
  const Value surroundings = describe_surroundings(options.threads);
  const double peak = cpu::fma_peak_gflops(static_cast<int>(options.threads));
  fmt::print("multiply-add peak {:.0f} GFLOP/s, oneDNN's 1024^3 product {:.0f}\n", peak, guarded_rival_gflops(peak));
  Value::List rows;
  for (const Target& target : targets()) {
    const FactoredSides sides = make_sides(target.of);
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
  CommonOptions options{.results = TESSERA_BENCH_DIR "/results/factored_bench.jsonl"};
  Arguments arguments("factored_bench", "times factored layers against the best dense ones");
  add_common(arguments, options);
  return run_benchmark(arguments, words, [&] { measure(options); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
