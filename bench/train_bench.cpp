// Times a training step against PyTorch in the same run: the same weights and batches, the first losses compared,
// then rounds in turn, so that the machine's drift hits both sides alike. The rival runs under its fastest settings.
// Exit codes: 0 measured, 1 the comparison is void (losses differ, rival crippled), 2 PyTorch is missing or bad arguments.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "bench/result_lines.h"
#include "bench/torch_rival.h"
#include "bench/train_workload.h"
#include "core/cpu/fma_peak.h"
#include "core/cpu/machine_memory.h"
#include "core/decisions.h"
#include "core/error.h"
#include "core/io/scratch_folder.h"
#include "train/decisions_file.h"
#include "train/environment.h"

namespace tessera::bench {
namespace {

constexpr double kLossTolerance = 1e-4;  // relative, on the first kComparedSteps
// In bf16 each activation is off by up to 2^-8 of itself, and the two sides round in other places; over a batch most of it
// cancels.
constexpr double kBf16LossTolerance = 5e-3;
constexpr std::int64_t kComparedSteps = 3;

struct Options {
  CommonOptions common{.rounds = 10, .results = TESSERA_BENCH_DIR "/results/train_bench.jsonl"};
  std::string python = "/usr/bin/python3";
  std::string script = TESSERA_BENCH_DIR "/train_bench_torch.py";
  std::string model = "resnet20";
  std::string precision = "f32";
  std::int64_t steps = 5;
  std::int64_t sweep_steps = 6;
};

void check_losses(const std::vector<double>& ours, const std::vector<double>& theirs, const TorchSettings& settings,
                  double tolerance) {
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const bool equal = std::abs(ours[i] - theirs[i]) <= tolerance * std::abs(theirs[i]);
    TESSERA_CHECK(equal, NumericError, "loss of step ", i, " is ", ours[i], ", torch's (", to_string(settings), ") is ",
                  theirs[i], "; they must agree to ", tolerance, " of their value");
  }
}

double loss_tolerance(const Options& options) { return options.precision == "bf16" ? kBf16LossTolerance : kLossTolerance; }

struct Chosen {
  TorchSettings settings;
  Value sweep;  // one row per setting
  std::int64_t least_memory_kib = std::numeric_limits<std::int64_t>::max();  // of all settings
};

std::vector<TorchSettings> sweepable(const TorchProgram& program) {
  std::vector<TorchSettings> all = all_torch_settings();
  if (!TorchRival(program, {}).environment().at("compiles").as_bool()) return all;
  for (TorchSettings settings : all_torch_settings()) {
    settings.compiled = true;
    all.push_back(settings);
  }
  return all;
}

// Time and memory of a short run, as `row` takes them; nothing where torch ends under the setting, as some versions do where they
// compile: `row` then says so.
std::optional<double> measure(const TorchProgram& program, const TorchSettings& settings, const Options& options,
                              const std::vector<double>& losses, Value& row) {
  try {
    TorchRival rival(program, settings);
    check_losses(losses, rival.run(kComparedSteps).loss, settings, loss_tolerance(options));
    const double ms = summarise(rival.run(options.sweep_steps).ms).median;
    row.set("ms", ms);
    row.set("memory_kib", rival.memory_kib());
    return ms;
  } catch (const IoError& error) {
    row.set("failed", error.what());
    return std::nullopt;
  }
}

// Short runs of every setting, each in a process of its own; the lowest median wins. All must compute our losses.
Chosen sweep_settings(const TorchProgram& program, const Options& options, const std::vector<double>& losses) {
  Chosen chosen;
  Value::List rows;
  double best = INFINITY;
  for (const TorchSettings& settings : sweepable(program)) {
    Value& row = rows.emplace_back(to_value(settings));
    const std::optional<double> ms = measure(program, settings, options, losses, row);
    if (!ms) {
      fmt::print("torch {:<60} {}\n", to_string(settings), row.at("failed").as_string());
      continue;
    }
    const std::int64_t memory = row.at("memory_kib").as_int();
    fmt::print("torch {:<60} {:8.1f} ms {:6d} MiB\n", to_string(settings), *ms, memory / 1024);
    chosen.least_memory_kib = std::min(chosen.least_memory_kib, memory);
    if (*ms < best) chosen.settings = settings;
    best = std::min(best, *ms);
  }
  TESSERA_CHECK(std::isfinite(best), InternalError, "torch ends under each of its settings: there is no rival");
  chosen.sweep = Value::list(std::move(rows));
  return chosen;
}

struct Comparison {
  std::vector<double> ours, theirs;  // ms of every timed step
  std::vector<double> ratios;  // per round: torch's median / our median
};

// The first step of a turn only brings caches and threads back and is not counted.
std::vector<double> timed(const Steps& steps) { return {steps.ms.begin() + 1, steps.ms.end()}; }

Comparison compare(TrainWorkload& workload, TorchRival& rival, const Options& options) {
  Comparison all;
  for (std::int64_t round = 0; round < options.common.rounds; ++round) {
    const std::vector<double> ours = timed(workload.run(options.steps + 1));
    const std::vector<double> theirs = timed(rival.run(options.steps + 1));
    all.ours.insert(all.ours.end(), ours.begin(), ours.end());
    all.theirs.insert(all.theirs.end(), theirs.begin(), theirs.end());
    all.ratios.push_back(quantile(theirs, 0.5) / quantile(ours, 0.5));
  }
  return all;
}

Value describe_run(const Options& options, const WorkloadConfig& workload) {
  Value row = Value::map();
  row.set("model", workload.model);
  row.set("batch", workload.batch);
  row.set("shape", str(workload.side, "x", workload.side, "x3"));
  row.set("precision", workload.precision);
  row.set("rounds", options.common.rounds);
  row.set("steps_per_round", options.steps);
  return row;
}

// What the steps added to the peak of this process, against the least that torch needs under any of its settings: its fastest
// are not those that need least.
void compare_memory(Value& row, std::int64_t ours_kib, const Chosen& chosen) {
  const double ratio = static_cast<double>(ours_kib) / static_cast<double>(chosen.least_memory_kib);
  fmt::print("memory: tessera {} MiB, torch {} MiB at its least, {:.2f} of it\n", ours_kib / 1024, chosen.least_memory_kib / 1024,
             ratio);
  row.set("tessera_memory_kib", ours_kib);
  row.set("torch_memory_kib", chosen.least_memory_kib);
  row.set("memory_ratio", ratio);
}

std::int64_t peak_kib() { return static_cast<std::int64_t>(cpu::peak_resident() / 1024); }

void report(Value& row, const Comparison& result) {
  const Summary ours = summarise(result.ours);
  const Summary theirs = summarise(result.theirs);
  const Summary ratio = summarise(result.ratios);
  print_summary("tessera", ours, " ms");
  print_summary("torch", theirs, " ms");
  print_summary("ratio", ratio, " x ");
  row.set("tessera_ms", to_value(ours));
  row.set("torch_ms", to_value(theirs));
  row.set("ratio", to_value(ratio));
}

void measure(const Options& options) {
  set_compute_threads(options.common.threads);
  const int threads = static_cast<int>(options.common.threads);
  WorkloadConfig config = workload_named(options.model);
  config.precision = options.precision;
  const std::int64_t start_kib = peak_kib();
  const DecisionScope decisions({.measure = true});
  const ScratchFolder folder("tessera_bench");
  TrainWorkload workload(config);
  workload.write_inputs(folder.path());
  const std::vector<double> losses = workload.run(kComparedSteps).loss;

  const TorchProgram program{options.python, options.script, folder.path(), threads, {"--precision", options.precision}};
  const Chosen chosen = sweep_settings(program, options, losses);
  TorchRival rival(program, chosen.settings);
  const std::vector<double> rival_losses = rival.run(kComparedSteps).loss;
  check_losses(losses, rival_losses, chosen.settings, loss_tolerance(options));
  const FairProduct product = fair_product(rival, [=] { return cpu::fma_peak_gflops(threads); });
  const Comparison result = compare(workload, rival, options);
  const std::int64_t memory_kib = peak_kib() - start_kib;

  fmt::print("rival: torch {}, {}\n", to_json(rival.environment()), to_string(chosen.settings));
  Value row = describe_run(options, config);
  report(row, result);
  row.set("tessera_losses", to_value(losses));
  row.set("tessera_decisions", tessera::to_value(decisions.taken()).at("decisions"));
  row.set("torch_losses", to_value(rival_losses));
  row.set("torch", rival.environment());
  row.set("torch_settings", to_value(chosen.settings));
  row.set("torch_sweep", chosen.sweep);
  row.set("torch_matmul_gflops", product.gflops);
  compare_memory(row, memory_kib, chosen);
  row.set("fma_peak_gflops", product.peak);
  publish(options.common, describe_surroundings(options.common.threads), row);
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("train_bench", "times a training step against PyTorch's");
  add_common(arguments, options.common);
  arguments.text("--model", options.model, "resnet20 (the default) or resnet18")
      .count("--steps", options.steps, "timed steps in a turn")
      .count("--sweep-steps", options.sweep_steps, "steps of each of torch's settings")
      .text("--precision", options.precision, "f32, or bf16 against torch's autocast")
      .text("--python", options.python, "interpreter that has torch (/usr/bin/python3)")
      .text("--script", options.script, "torch's side");
  return run_benchmark(arguments, words, [&] { or_explain_missing_torch([&] { measure(options); }); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
