// Times factored layers against the best dense layer that computes the same function: ours, or oneDNN called directly, Winograd
// included. It times inference, in which both sides keep what they derive from weights, and training (forward, both backwards).
// If --python names an interpreter that has them, TensorLy-Torch's factored layers and PyTorch's linear ones are rivals too.
// Exit codes: 0 measured, 1 the comparison is void (results differ, rival crippled), 2 a library is missing or bad arguments.
#include <fmt/format.h>

#include "bench/cases/dense_cases.h"
#include "bench/cases/factored_cases.h"
#include "bench/cases/library_cases.h"
#include "bench/cases/resnet18_sc.h"
#include "bench/result_lines.h"
#include "core/cpu/fma_peak.h"
#include "core/support/error.h"
#include "train/run/environment.h"

namespace tessera::bench {
namespace {

struct Options {
  CommonOptions common = {};
  TorchOptions torch{.python = {}, .script = TESSERA_BENCH_DIR "/factored_bench_torch.py"};
  std::string only = {};
};

struct Target {
  FactoredCase of;
  double forward, training;  // least ratio; 0 where none is set
};

std::vector<Target> targets() {
  const ConvShape conv{8, 256, 256, 14, 3};
  const auto tucker2 = [&](std::int64_t rank) { return FactoredCase{"tucker2", {{"out", rank}, {"in", rank}}, conv}; };
  const auto svd = [](std::int64_t rows) { return FactoredCase{"svd", {{"rank", 128}}, LinearShape{rows, 1024, 1024}}; };
  const std::vector<std::int64_t> modes{4, 8, 8, 4};
  return {
      {tucker2(64), 5.0, 4.5},
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

std::string name_of(const FactoredCase& of) { return str(of.format, " of ", to_string(of.shape)); }

void print_timed(const char* indent, const Value& row) {
  fmt::print("{}{:<70} {:8.3f} ms {:5.0f} GF/s\n", indent, row.at("name").as_string(), row.at("ms").at("median").as_double(),
             row.at("gflops").as_double());
}

void print_row(const Value& row, double target) {
  const Value& ratio = row.at("ratio");
  fmt::print("{} of {}, {}, {}: {} the rival; {:.2f} times fewer FLOPs{}\n", row.at("format").as_string(),
             row.at("shape").as_string(), row.at("ranks").as_string(), row.at("phase").as_string(), ratio_text(ratio),
             row.at("flop_ratio").as_double(),
             target > 0 ? fmt::format("; target {}x: {}", target, counted(ratio) >= target ? "met" : "missed") : "");
  for (const char* side : {"rival", "other_dense", "blocked_dense", "factored"}) {
    if (const Value* timed = row.find(side)) print_timed("  ", *timed);
  }
  for (const char* steps : {"parts", "floors"}) {
    for (const Value& timed : row.at(steps).as_list()) print_timed("    ", timed);
  }
  std::fflush(stdout);
}

void print_library_row(const Value& row, double target) {
  const Value& ratio = row.at("ratio");
  fmt::print("  {} {}; parameters {} / {}, multiply-adds {} / {}; target {}x: {}\n", ratio_text(ratio),
             row.at("library").as_string(), row.at("parameters").as_int(), row.at("library_parameters").as_int(),
             row.at("macs").as_int(), row.at("library_macs").as_int(), target, counted(ratio) >= target ? "met" : "missed");
  std::fflush(stdout);
}

void measure_dense(const Options& options, const std::vector<Target>& chosen, Value::List& rows) {
  if (chosen.empty()) return;
  const double peak = cpu::fma_peak_gflops(static_cast<int>(options.common.threads));
  fmt::print("multiply-add peak {:.0f} GFLOP/s, oneDNN's 1024^3 product {:.0f}\n", peak, guarded_rival_gflops(peak));
  for (const Target& target : chosen) {
    const FactoredSides sides = make_sides(target.of);
    for (const Phase phase : {Phase::inference, Phase::training}) {
      const double least = phase == Phase::inference ? target.forward : target.training;
      Value& row = rows.emplace_back(measure_phase(sides, phase, {.rounds = options.common.rounds}));
      print_row(row, least);
      if (least > 0) row.set("target", least);
      row.set("fma_peak_gflops", peak);
    }
  }
}

struct NetworkTarget {
  std::int64_t batch;
  Phase phase;
  double least;
  std::string name() const {
    return str("tucker2 of resnet18, batch ", batch, phase == Phase::inference ? ", forward" : ", training");
  }
};

constexpr double kChainTarget = 1.0;  // never slower than oneDNN alone

std::vector<NetworkTarget> network_targets() {
  return {{1, Phase::inference, 1.8}, {32, Phase::inference, 1.3}, {32, Phase::training, 1.3}};
}

void measure_networks(const Options& options, const std::vector<NetworkTarget>& chosen, Value::List& rows) {
  if (chosen.empty()) return;
  const NetworkPair networks = resnet18_pair();
  for (const NetworkTarget& target : chosen) {
    Value& row = rows.emplace_back(measure_resnet18(networks, target.batch, target.phase, options.common.rounds));
    const Value& ratio = row.at("ratio");
    fmt::print("{}: {} the dense network, {:.1f} ms and {:.1f} ms; {:.2f} times fewer FLOPs; target {}x: {}\n", target.name(),
               ratio_text(ratio), row.at("factored").at("ms").at("median").as_double(),
               row.at("rival").at("ms").at("median").as_double(), row.at("flop_ratio").as_double(), target.least,
               counted(ratio) >= target.least ? "met" : "missed");
    if (const Value* chain = row.find("chain")) {
      const double against_chain = counted(row.at("chain_ratio"));
      fmt::print("  {:.2f}x {}, {:.1f} ms; target {}x: {}\n", against_chain, chain->at("name").as_string(),
                 chain->at("ms").at("median").as_double(), kChainTarget, against_chain >= kChainTarget ? "met" : "missed");
      row.set("chain_target", kChainTarget);
    }
    std::fflush(stdout);
    row.set("target", target.least);
  }
}

void measure_libraries(const LibraryOptions& options, const std::vector<LibraryTarget>& chosen, Value::List& rows) {
  for (const auto& [of, least] : chosen) {
    for (const Phase phase : {Phase::inference, Phase::training}) {
      const Value described = LibraryWorkload(of, phase).describe();
      fmt::print("{} against {}, {}: ranks {} / {}\n", name_of(of.of), library_of(of), described.at("phase").as_string(),
                 described.at("ranks").as_string(), described.at("library_ranks").as_string());
      Value& row = rows.emplace_back(measure_library(of, phase, options));
      print_library_row(row, least);
      row.set("target", least);
    }
  }
}

// Runs before anything is measured, so that a run of many minutes does not end without its last rows.
void check_interpreter(const LibraryOptions& options) {
  try {
    check_library(options);
  } catch (const TorchMissing& error) {
    throw ConfigError(
        str(error.what(), "; --python needs an interpreter that has torch, tensorly and tensorly-torch, or is left out"));
  }
}

void measure(const Options& options) {
  std::vector<Target> dense = targets();
  std::erase_if(dense, [&](const Target& target) { return name_of(target.of).find(options.only) == std::string::npos; });
  std::vector<LibraryTarget> libraries = library_targets();
  std::erase_if(libraries, [&](const LibraryTarget& target) {
    return str(name_of(target.of.of), " against ", library_of(target.of)).find(options.only) == std::string::npos;
  });
  std::vector<NetworkTarget> networks = network_targets();
  std::erase_if(networks, [&](const NetworkTarget& target) { return target.name().find(options.only) == std::string::npos; });
  TESSERA_CHECK(!dense.empty() || !libraries.empty() || !networks.empty(), ConfigError, "factored_bench: --only '", options.only,
                "' is in no row; they read like '", name_of(targets().front().of), "' and '",
                name_of(library_targets().front().of.of), " against TensorLy-Torch'");
  const LibraryOptions library{options.torch, static_cast<int>(options.common.threads), options.common.rounds};
  if (!options.torch.python.empty()) check_interpreter(library);
  set_compute_threads(options.common.threads);
  const Value surroundings = describe_surroundings(options.common.threads);
  Value::List rows;
  measure_dense(options, dense, rows);
  measure_networks(options, networks, rows);
  if (options.torch.python.empty()) {
    for (const LibraryTarget& target : libraries) {
      fmt::print("{}, {}, against {}: left out, because --python names no interpreter\n", name_of(target.of.of),
                 to_string(target.of.of.ranks), library_of(target.of));
    }
  } else {
    measure_libraries(library, libraries, rows);
  }
  const CommonOptions to = destination(options.common, options.only, TESSERA_BENCH_DIR "/results/factored_bench.jsonl");
  for (const Value& row : rows) publish(to, surroundings, row);  // all or none: an interrupted run leaves no partial table
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("factored_bench", "times factored layers against the best dense ones and those of Python's libraries");
  add_common(arguments, options.common);
  add_torch(arguments, options.torch, "torch, tensorly and tensorly-torch");
  arguments.text("--only", options.only, "rows whose format, shape and library contain this; without --results printed only");
  return run_benchmark(arguments, words, [&] { measure(options); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
