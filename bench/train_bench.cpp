// Times a training step against PyTorch in the same run. Both have the same weights and batches. The first losses are compared,
// then both take turns, so that the machine's drift affects both alike. The rival's settings are memory layout, malloc, ATen's
// instruction set, compilation and what waiting threads do. A short sweep chooses up to three within 1.5 times its best for every
// round, and their fastest is the rival. On a GPU the settings are layout, compilation and graphs. Up to two within 1.1 times the
// best take part, and the faster eager one. The last line says whether targets are reached. With --compressed the rival is our
// dense network instead. Exit codes: 0 measured, even if targets are missed, 1 the comparison is void (losses differ, rival
// crippled), 2 PyTorch is missing or bad arguments.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "bench/cases/compressed_gpt.h"
#include "bench/named_workloads.h"
#include "bench/result_lines.h"
#include "bench/rivals/train_rival.h"
#include "core/cpu/fma_peak.h"
#include "core/cpu/machine_memory.h"
#include "core/device/decisions.h"
#include "core/device/device_info.h"
#include "core/device/precision.h"
#include "core/io/scratch_folder.h"
#include "core/support/error.h"
#include "train/run/decisions_file.h"
#include "train/run/environment.h"
#include "train/run/profile_report.h"
#include "train/run/step_profiler.h"

namespace tessera::bench {
namespace {

constexpr double kLossTolerance = 1e-4;  // relative, on the first kComparedSteps
// In bf16 each activation is off by up to 2^-8 of itself, and the two sides round in different places. Over a batch most of the
// errors cancel.
constexpr double kBf16LossTolerance = 5e-3;
constexpr double kTf32LossTolerance = 1e-3;  // operands have 11 significant bits
constexpr std::int64_t kComparedSteps = 3;

// On a GPU: the least ratios of torch's time to ours.
struct TrainTarget {
  std::string_view model, precision;
  double best;  // to the fastest of torch's ways
  double eager = 0;  // to the faster eager way; 0: no target
};
constexpr TrainTarget kTargets[]{{"resnet20", "f32", 1.2, 2.0}, {"resnet18", "bf16", 1.0}, {"resnet50", "bf16", 1.0}};

// On the CPU, against one major version of torch: the least ratio of torch's time to ours, the least share of the multiply-add
// peak, and the most of torch's memory beyond weights, gradients and moments. 0: no target.
struct CpuTarget {
  std::string_view torch, model, precision;
  double ratio, peak_share = 0, memory = 0;
};
constexpr CpuTarget kCpuTargets[]{
    {"1.", "resnet20", "f32", 1.3}, {"1.", "resnet20", "bf16", 1.2},    {"1.", "resnet18", "f32", 1.15},
    {"2.", "resnet20", "f32", 1.1}, {"2.", "resnet20", "bf16", 1.35},   {"2.", "gpt", "f32", 1.6, .65},
    {"2.", "gpt", "bf16", 1.6},     {"2.", "gpt2", "f32", 1.3, 0, .75}, {"2.", "gpt2", "bf16", 1.2},
    {"2.", "vit", "f32", 1.4},      {"2.", "vit", "bf16", 1.3}};

constexpr const char* kResults = TESSERA_BENCH_DIR "/results/train_bench.jsonl";
constexpr const char* kGpuResults = TESSERA_BENCH_DIR "/results/cuda_train_bench.jsonl";

struct Options {
  CommonOptions common{.rounds = 10, .results = {}};
  TorchOptions torch{.script = TESSERA_BENCH_DIR "/train_bench_torch.py", .sweep_runs = 6, .unit = "steps"};
  std::string model = "resnet20";
  std::string precision = "f32";
  std::int64_t steps = 5;
  std::string device = "cpu";
  std::string ways = {};
  std::string compressed = {};
  bool alone = false;
  bool profile = false;

  TrainSweepOptions sweep(const WorkloadConfig& workload) const {
    return {torch.sweep_runs, workload.sample.front().shape.rank() == 3, ways};
  }
};

double loss_tolerance(const Options& options) {
  if (options.precision == "tf32") return kTf32LossTolerance;
  return options.precision == "bf16" ? kBf16LossTolerance : kLossTolerance;
}

using Rivals = std::vector<std::unique_ptr<TrainRival>>;

FinalistTimes compare(TrainWorkload& workload, const Rivals& rivals, const Options& options) {
  std::vector<SelfTimed> sides{[&](std::int64_t count) { return workload.run(count).ms; }};
  for (const auto& rival : rivals) sides.emplace_back([&rival](std::int64_t count) { return rival->run(count); });
  const std::vector<Samples> samples = time_in_turns(sides, options.common.rounds, options.steps);
  return {samples[0], {samples.begin() + 1, samples.end()}};
}

Value describe_run(const Options& options, const WorkloadConfig& workload) {
  Value row = Value::map();
  row.set("model", workload.model);
  row.set("batch", workload.batch);
  row.set("shape", workload.shape);
  row.set("precision", workload.precision);
  row.set("optimizer", std::holds_alternative<AdamWConfig>(workload.optimizer.form) ? "AdamW" : "SGD");
  if (workload.device.is_cuda()) {
    const DeviceInfo info = device_info(workload.device);
    row.set("gpu", info.name);
    row.set("driver", info.driver);
    row.set("libraries", info.libraries);
  }
  row.set("rounds", options.common.rounds);
  row.set("steps_per_round", options.steps);
  row.set("sweep_steps", options.torch.sweep_runs);
  return row;
}

// Compares what the steps added to the peak memory of this process with the least that torch needs under any of its settings: in
// all, and beyond the weights, gradients and moments, which both have to keep.
void compare_memory(Value& row, std::int64_t ours_kib, std::int64_t torch_kib, std::int64_t state_kib) {
  const auto ratio = [&](std::int64_t kept) {
    return static_cast<double>(ours_kib - kept) / static_cast<double>(torch_kib - kept);
  };
  fmt::print("memory: tessera {} MiB, torch {} MiB at its least, {:.2f} of it; {:.2f} beyond the {} MiB that both keep\n",
             ours_kib / 1024, torch_kib / 1024, ratio(0), ratio(state_kib), state_kib / 1024);
  row.set("tessera_memory_kib", ours_kib);
  row.set("torch_memory_kib", torch_kib);
  row.set("memory_ratio", ratio(0));
  row.set("state_kib", state_kib);
  row.set("beyond_state_ratio", ratio(state_kib));
}

// The share of the f32 peak is reported for f32 only, because other precisions may exceed it.
void report_rate(Value& row, const TrainWorkload& workload, const Options& options) {
  const double gflops = workload.flops() / row.at("tessera_ms").at("median").as_double() * 1e-6;
  row.set("gflops", gflops);
  if (options.precision != "f32") return;
  const double share = gflops / row.at("fma_peak_gflops").as_double();
  fmt::print("  {:.0f} GFLOP/s, {:.2f} of the multiply-add peak\n", gflops, share);
  row.set("peak_share", share);
}

void judge_on_cpu(Value& row, const Options& options) {
  const std::string& torch = row.at("torch").at("version").as_string();
  const auto same = [&](const CpuTarget& target) {
    return target.model == options.model && target.precision == options.precision && torch.starts_with(target.torch);
  };
  const auto* const target = std::ranges::find_if(kCpuTargets, same);
  if (target == std::end(kCpuTargets)) return;
  const auto say = [&](const char* what, double reached, double wanted, bool met) {
    fmt::print("{} {}: {} {:.3f}, target {}: {}\n", options.model, options.precision, what, reached, wanted,
               met ? "met" : "missed");
  };
  const double ratio = counted(row.at("ratio"));
  row.set("target", target->ratio);
  say("torch over ours", ratio, target->ratio, ratio >= target->ratio);
  if (target->peak_share > 0) {
    const double share = row.at("peak_share").as_double();
    row.set("share_target", target->peak_share);
    say("share of the peak", share, target->peak_share, share >= target->peak_share);
  }
  if (target->memory > 0) {
    const double memory = row.at("beyond_state_ratio").as_double();
    row.set("memory_target", target->memory);
    say("memory beyond what both keep", memory, target->memory, memory <= target->memory);
  }
}

std::int64_t peak_kib() { return static_cast<std::int64_t>(cpu::peak_resident() / 1024); }

// On a GPU the steps run one by one, because a run of several steps reports their mean loss.
std::vector<double> first_losses(TrainWorkload& workload, const WorkloadConfig& config) {
  if (config.device.is_cpu()) return workload.run(kComparedSteps).loss;
  std::vector<double> losses;
  for (std::int64_t step = 0; step < kComparedSteps; ++step) losses.push_back(workload.run(1).loss.front());
  return losses;
}

Samples time_alone(TrainWorkload& workload, const Options& options) {
  const SelfTimed ours = [&](std::int64_t count) { return workload.run(count).ms; };
  return time_in_turns(std::span(&ours, 1), options.common.rounds, options.steps).front();
}

// Starts each finalist in a separate process. A finalist that does not fit into the remaining GPU memory is left out.
Rivals start_rivals(const TorchProgram& program, std::vector<TorchSettings>& finalists, const FirstLosses& losses) {
  Rivals rivals;
  std::erase_if(finalists, [&](const TorchSettings& settings) {
    try {
      rivals.push_back(std::make_unique<TrainRival>(program, settings, losses));
      return false;
    } catch (const IoError& error) {
      if (rivals.empty()) throw;
      fmt::print("{} is left out: {}\n", to_string(settings), error.what());
      return true;
    }
  });
  return rivals;
}

// Sets "eager_ratio", torch's time without compilation or graphs over ours. It is reported next to the ratio to the best way.
void report_eager(Value& row, const FinalistTimes& times, const std::vector<TorchSettings>& finalists) {
  const auto eager = std::ranges::find_if(finalists, is_eager);
  if (eager == finalists.end()) return;
  const Samples& theirs = times.theirs[static_cast<std::size_t>(eager - finalists.begin())];
  print_summary("  eager", summarise(ratios(theirs, times.ours)), " x ");
  row.set("eager_ratio", ratio_value(theirs, times.ours));
}

// Sets "target" and "reached" for "ratio". `prefix` is put before these three keys. A missing ratio reaches no target.
std::string judge(Value& row, const std::string& prefix, double target) {
  const Value* const ratio = row.find(prefix + "ratio");
  const double reached = ratio != nullptr ? counted(*ratio) : 0;
  row.set(prefix + "target", target);
  row.set(prefix + "reached", reached >= target);
  return fmt::format("{:.3f}x, target {}: {}", reached, target, reached >= target ? "reached" : "missed");
}

void judge_training(Value& row, const Options& options) {
  const auto same = [&](const TrainTarget& target) {
    return target.model == options.model && target.precision == options.precision;
  };
  const auto* const target = std::ranges::find_if(kTargets, same);
  if (target == std::end(kTargets)) return;
  std::string text = str(options.model, ' ', options.precision, ", torch's best over ours ", judge(row, "", target->best));
  if (target->eager > 0) text += str("; eager ", judge(row, "eager_", target->eager));
  const auto failed = [](const Value& way) { return way.find("failed") != nullptr; };
  const auto ways = std::ranges::count_if(std::as_const(row).at("torch_sweep").as_list(), failed);
  if (ways > 0) text += str("; ", ways, " of torch's ways failed");
  print_verdict(text);
}

void measure_against_torch(TrainWorkload& workload, const TorchProgram& program, const FirstLosses& losses,
                           const Options& options, Value& row) {
  TorchSweep<TorchSettings> swept = sweep_training(program, {.steps = options.torch.sweep_runs, .only = options.ways}, losses);
  add_eager(swept);
  const Rivals rivals = start_rivals(program, swept.finalists, losses);
  const FinalistTimes times = compare(workload, rivals, options);
  report_eager(row, times, swept.finalists);
  report_times(row, times, swept.finalists);
  row.set("torch_losses", to_value(rivals[times.best]->losses()));
  row.set("torch", rivals[times.best]->torch().environment());
  row.set("torch_sweep", swept.rows);
}

// The rivals are separate processes on the same GPU. They take turns with ours.
void measure_on_gpu(const Options& options, Device device) {
  TESSERA_CHECK(cuda_device_count() > device.index(), ConfigError, "train_bench: --device is ", device, ": ", why_no_cuda());
  set_compute_threads(options.common.threads);
  WorkloadConfig config = workload_named(options.model, device);
  config.precision = options.precision;
  const Tf32Products tf32(options.precision == "tf32");
  const DecisionScope decisions({.measure = true});
  const ScratchFolder folder("tessera_bench");
  TrainWorkload workload(config);
  if (!options.alone) workload.write_inputs(folder.path());
  const FirstLosses losses{first_losses(workload, config), loss_tolerance(options)};
  Value row = describe_run(options, config);
  row.set("tessera_losses", to_value(losses.values));
  row.set("tessera_decisions", tessera::to_value(decisions.taken()).at("decisions"));
  if (options.alone) {
    const Samples times = time_alone(workload, options);
    print_summary(options.model, summarise(times.rounds), " ms");
    row.set("tessera_ms", to_value(times));
  } else {
    const TorchProgram program{options.torch.python,
                               options.torch.script,
                               folder.path(),
                               static_cast<int>(options.common.threads),
                               {"--precision", options.precision},
                               true};
    measure_against_torch(workload, program, losses, options, row);
    judge_training(row, options);
  }
  publish(options.common, describe_surroundings(options.common.threads, device), row);
}

void profile(const Options& options, const Arguments& arguments) {
  constexpr std::string_view kOfOthers[]{"--rounds", "--results", "--dry-run", "--sweep-steps", "--ways", "--python", "--script"};
  arguments.refuse(kOfOthers, "with --profile, which times our side and writes no result");
  set_compute_threads(options.common.threads);
  WorkloadConfig config = workload_named(options.model);
  config.precision = options.precision;
  const DecisionScope decisions({.measure = true});
  TrainWorkload workload(config);
  StepProfiler profiler(options.steps, measure_peaks(static_cast<int>(options.common.threads)));
  while (!profiler.complete()) profiler.step([&] { workload.run(1); });
  ProfileReport report = profiler.report();
  report.stage = options.model;
  report.last_step = StepProfiler::kWarmUp + options.steps;
  report.batch = config.batch;
  report.processor = describe_surroundings(options.common.threads).at("processor").as_string();
  fmt::print("{}\n", to_text(report));
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
  const FirstLosses losses{workload.run(kComparedSteps).loss, loss_tolerance(options)};

  const TorchProgram program{
      options.torch.python, options.torch.script, folder.path(), threads, {"--precision", options.precision}};
  const TorchSweep<TorchSettings> swept = sweep_training(program, options.sweep(config), losses);
  Rivals rivals;
  for (const TorchSettings& settings : swept.finalists) {
    rivals.push_back(std::make_unique<TrainRival>(program, settings, losses));
  }
  const std::vector<FairProduct> products = fair_products(rivals, cpu::fma_peak_gflops);
  const FinalistTimes times = compare(workload, rivals, options);
  const std::int64_t memory_kib = peak_kib() - start_kib;

  Value row = describe_run(options, config);
  report_times(row, times, swept.finalists);
  row.set("tessera_losses", to_value(losses.values));
  row.set("torch_losses", to_value(rivals[times.best]->losses()));
  row.set("torch", rivals[times.best]->torch().environment());
  row.set("tessera_decisions", tessera::to_value(decisions.taken()).at("decisions"));
  row.set("torch_sweep", swept.rows);
  set_product(row, products[times.best]);
  report_rate(row, workload, options);
  compare_memory(row, memory_kib, least_memory_kib(swept.rows), workload.state_bytes() / 1024);
  judge_on_cpu(row, options);
  publish(options.common, describe_surroundings(options.common.threads), row);
}

void measure_compressed(const Options& options, const Arguments& arguments) {
  constexpr std::string_view kOfTorch[]{"--sweep-steps", "--ways", "--python", "--script"}, kOfTurns[]{"--steps"};
  arguments.refuse(kOfTorch, "with --compressed, which is without torch");
  arguments.refuse(kOfTurns, "with --compressed, whose turns take 200 ms or more");
  TESSERA_CHECK(options.model == "gpt2" && options.precision == "f32", ConfigError,
                "train_bench: --compressed needs --model gpt2 in f32");
  set_compute_threads(options.common.threads);
  const Value surroundings = describe_surroundings(options.common.threads);
  publish(options.common, surroundings,
          measure_compressed_step(workload_named(options.model), {options.compressed, options.common.rounds}));
}

void measure_on(Options options, const Arguments& arguments) {
  const Device device = Device::parse(options.device);
  TESSERA_CHECK(device.is_cuda() || !options.alone, ConfigError, "train_bench: --alone needs --device cuda");
  TESSERA_CHECK(device.is_cpu() || options.compressed.empty(), ConfigError, "train_bench: --compressed is for the CPU");
  TESSERA_CHECK(!options.profile || (device.is_cpu() && options.compressed.empty()), ConfigError,
                "train_bench: --profile is for the CPU, without --compressed");
  if (options.profile) return profile(options, arguments);
  if (options.common.results.empty()) options.common.results = device.is_cuda() ? kGpuResults : kResults;
  if (device.is_cuda()) return measure_on_gpu(options, device);
  options.compressed.empty() ? measure(options) : measure_compressed(options, arguments);
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("train_bench", "times a training step against PyTorch's");
  add_common(arguments, options.common);
  arguments.text("--model", options.model, "resnet20 (the default), resnet18, gpt, gpt2 or vit; on a GPU resnet20, 18 or 50")
      .count("--steps", options.steps, "timed steps in a turn")
      .text("--precision", options.precision, "f32, or bf16 against torch's autocast; tf32 on a GPU")
      .text("--ways", options.ways, "sweep only torch's settings whose text has this, such as 'eager, contiguous, avx512'")
      .text("--compressed", options.compressed, "svd or tile: gpt2's MLPs in this form, against our dense network")
      .text("--device", options.device, "cpu (the default), cuda or cuda:N")
      .flag("--alone", options.alone, "time our side only; with --device cuda")
      .flag("--profile", options.profile, "print where the time of --steps of our steps goes, op by op");
  add_torch(arguments, options.torch);
  return run_benchmark(arguments, words, [&] { or_explain_missing_torch([&] { measure_on(options, arguments); }); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
