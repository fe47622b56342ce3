// Times a ResNet-20 training step against PyTorch in the same run: the same weights and batches, the first losses compared,
// then rounds in turn, so that the machine's drift hits both sides alike. The rival runs under its fastest settings.
// Exit codes: 0 measured, 1 the comparison is void (losses differ, rival crippled), 2 PyTorch is missing or bad arguments.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <fmt/format.h>

#include "bench/fma_peak.h"
#include "bench/torch_rival.h"
#include "bench/train_workload.h"
#include "core/decisions.h"
#include "core/error.h"
#include "core/io/scratch_folder.h"
#include "core/summary.h"
#include "train/decisions_file.h"
#include "train/environment.h"
#include "train/experiment.h"

namespace tessera::bench {
namespace {

constexpr int kVoid = 1;
constexpr int kUnusable = 2;
constexpr double kLossTolerance = 1e-4;  // relative, on the first kComparedSteps
constexpr std::int64_t kComparedSteps = 3;
constexpr double kLeastMatmulShare = 0.6;  // of the multiply-add peak; below it torch runs on a reference BLAS or one thread

struct Options {
  std::string python = "/usr/bin/python3";
  std::string script = TESSERA_BENCH_DIR "/train_bench_torch.py";
  std::string results = TESSERA_BENCH_DIR "/results/train_bench.jsonl";
  std::int64_t rounds = 10;
  std::int64_t steps = 5;
  std::int64_t sweep_steps = 6;
  int threads = 2;
  bool dry_run = false;
};

void check_losses(const std::vector<double>& ours, const std::vector<double>& theirs, const TorchSettings& settings) {
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const bool equal = std::abs(ours[i] - theirs[i]) <= kLossTolerance * std::abs(theirs[i]);
    TESSERA_CHECK(equal, NumericError, "train_bench: loss of step ", i, " is ", ours[i], ", torch's (", to_string(settings),
                  ") is ", theirs[i], "; they must agree to ", kLossTolerance, " of their value");
  }
}

struct Chosen {
  TorchSettings settings;
  Value sweep;  // one row per setting
};

// Short runs of every setting, each in a process of its own; the lowest median wins. All must compute our losses.
Chosen sweep_settings(const TorchProgram& program, const Options& options, const std::vector<double>& losses) {
  Chosen chosen;
  Value::List rows;
  double best = INFINITY;
  for (const TorchSettings& settings : all_torch_settings()) {
    TorchRival rival(program, settings);
    check_losses(losses, rival.run(kComparedSteps).loss, settings);
    const double ms = summarise(rival.run(options.sweep_steps).ms).median;
    fmt::print("torch {:<50} {:8.1f} ms\n", to_string(settings), ms);
    Value row = to_value(settings);
    row.set("ms", ms);
    rows.push_back(std::move(row));
    if (ms < best) chosen.settings = settings;
    best = std::min(best, ms);
  }
  chosen.sweep = Value::list(std::move(rows));
  return chosen;
}

double guarded_matmul(TorchRival& rival, double peak) {
  const double gflops = rival.matmul_gflops();
  fmt::print("torch matmul 1024^3: {:.0f} GFLOP/s, multiply-add peak {:.0f}\n", gflops, peak);
  TESSERA_CHECK(gflops >= kLeastMatmulShare * peak, InternalError, "train_bench: torch's matmul reaches ", gflops, " of ", peak,
                " GFLOP/s; needs ", kLeastMatmulShare,
                " of the peak: not a fair rival (reference BLAS, one thread, or a busy machine)");
  return gflops;
}

struct Comparison {
  std::vector<double> ours, theirs;  // ms of every timed step
  std::vector<double> ratios;  // per round: torch's median / our median
};

// The first step of a turn only brings caches and threads back and is not counted.
std::vector<double> timed(const Steps& steps) { return {steps.ms.begin() + 1, steps.ms.end()}; }

Comparison compare(TrainWorkload& workload, TorchRival& rival, const Options& options) {
  Comparison all;
  for (std::int64_t round = 0; round < options.rounds; ++round) {
    const std::vector<double> ours = timed(workload.run(options.steps + 1));
    const std::vector<double> theirs = timed(rival.run(options.steps + 1));
    all.ours.insert(all.ours.end(), ours.begin(), ours.end());
    all.theirs.insert(all.theirs.end(), theirs.begin(), theirs.end());
    all.ratios.push_back(quantile(theirs, 0.5) / quantile(ours, 0.5));
  }
  return all;
}

Value to_value(const Summary& summary) {
  Value value = Value::map();
  value.set("median", summary.median);
  value.set("p10", summary.p10);
  value.set("p90", summary.p90);
  return value;
}

Value to_value(const std::vector<double>& numbers) { return Value::list(Value::List(numbers.begin(), numbers.end())); }

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[sizeof "2026-01-01T00:00:00Z"];
  std::strftime(text, sizeof text, "%FT%TZ", std::gmtime(&now));
  return text;
}

// What was measured, on what. The host's name stays out.
Value describe_run(const Options& options, const WorkloadConfig& workload) {
  ExperimentConfig config;
  config.threads.compute = options.threads;
  Value row = describe_environment(config);
  row.erase("host");
  row.set("date", today());
  row.set("model", "resnet20");
  row.set("batch", workload.batch);
  row.set("shape", "32x32x3");
  row.set("rounds", options.rounds);
  row.set("steps_per_round", options.steps);
  const char* const wait_policy = std::getenv("OMP_WAIT_POLICY");  // inherited by the rival
  row.set("omp_wait_policy", wait_policy != nullptr ? wait_policy : "default");
  return row;
}

void append(const std::string& path, const Value& row) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream out(path, std::ios::app);
  out << to_json(row) << '\n';
  TESSERA_CHECK(out.flush().good(), IoError, "train_bench: cannot append to ", path);
}

void print(const char* name, const Summary& s, const char* unit) {
  fmt::print("{:<8} median {:8.2f}{}  p10 {:8.2f}  p90 {:8.2f}\n", name, s.median, unit, s.p10, s.p90);
}

void measure(const Options& options) {
  set_compute_threads(options.threads);
  const double peak = fma_peak_gflops(options.threads);
  const WorkloadConfig config;
  const DecisionScope decisions({.measure = true});
  const ScratchFolder folder("tessera_bench");
  TrainWorkload workload(config);
  workload.write_inputs(folder.path());
  const std::vector<double> losses = workload.run(kComparedSteps).loss;

  const TorchProgram program{options.python, options.script, folder.path(), options.threads};
  const Chosen chosen = sweep_settings(program, options, losses);
  TorchRival rival(program, chosen.settings);
  const std::vector<double> rival_losses = rival.run(kComparedSteps).loss;
  check_losses(losses, rival_losses, chosen.settings);
  const double matmul = guarded_matmul(rival, peak);
  const Comparison result = compare(workload, rival, options);

  fmt::print("rival: torch {}, {}\n", to_json(rival.environment()), to_string(chosen.settings));
  print("tessera", summarise(result.ours), " ms");
  print("torch", summarise(result.theirs), " ms");
  print("ratio", summarise(result.ratios), " x ");

  Value row = describe_run(options, config);
  row.set("tessera_ms", to_value(summarise(result.ours)));
  row.set("torch_ms", to_value(summarise(result.theirs)));
  row.set("ratio", to_value(summarise(result.ratios)));
  row.set("tessera_losses", to_value(losses));
  row.set("tessera_decisions", tessera::to_value(decisions.taken()).at("decisions"));
  row.set("torch_losses", to_value(rival_losses));
  row.set("torch", rival.environment());
  row.set("torch_settings", to_value(chosen.settings));
  row.set("torch_sweep", chosen.sweep);
  row.set("torch_matmul_gflops", matmul);
  row.set("fma_peak_gflops", peak);
  if (options.dry_run) {
    fmt::print("{}\n", to_json(row));
  } else {
    append(options.results, row);
  }
}

constexpr const char* kUsage =
    "train_bench: times a ResNet-20 training step against PyTorch's\n"
    "  --rounds N       turns of each side (10)\n"
    "  --steps N        timed steps in a turn (5)\n"
    "  --sweep-steps N  steps of each of torch's settings (6)\n"
    "  --threads N      compute threads of both sides (2)\n"
    "  --python PATH    interpreter that has torch (/usr/bin/python3)\n"
    "  --script PATH    torch's side\n"
    "  --results PATH   file that the result is appended to\n"
    "  --dry-run        print the result instead of appending it\n";

template <class T>
void read_count(std::string_view name, std::string_view text, T& count) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  TESSERA_CHECK(failure == std::errc() && end == text.data() + text.size() && count >= 1, ConfigError, "train_bench: ", name,
                " is '", text, "'; needs a whole number of at least 1");
}

void read_option(std::string_view name, std::string_view text, Options& options) {
  if (name == "--rounds") return read_count(name, text, options.rounds);
  if (name == "--steps") return read_count(name, text, options.steps);
  if (name == "--sweep-steps") return read_count(name, text, options.sweep_steps);
  if (name == "--threads") return read_count(name, text, options.threads);
  for (const auto& [path, target] : {std::pair("--python", &options.python), std::pair("--script", &options.script),
                                     std::pair("--results", &options.results)}) {
    if (name != path) continue;
    *target = text;
    return;
  }
  throw ConfigError(str("train_bench: unknown option ", name, "; --help lists them"));
}

Options read_options(const std::vector<std::string_view>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--dry-run") {
      options.dry_run = true;
      continue;
    }
    TESSERA_CHECK(i + 1 < words.size(), ConfigError, "train_bench: ", words[i],
                  " needs a value, or is unknown; --help lists options");
    read_option(words[i], words[i + 1], options);
    ++i;
  }
  return options;
}

int run_program(const std::vector<std::string_view>& words) {
  if (std::find(words.begin(), words.end(), "--help") != words.end()) {
    std::cout << kUsage;
    return 0;
  }
  try {
    measure(read_options(words));
  } catch (const ConfigError& error) {
    std::cerr << error.what() << '\n';
    return kUnusable;
  } catch (const TorchMissing& error) {
    std::cerr << error.what() << "; install Debian's python3-torch or name another interpreter with --python\n";
    return kUnusable;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return kVoid;
  }
  return 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
