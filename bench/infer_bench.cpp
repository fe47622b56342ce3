// Times inference of named networks, batch norm folded, against PyTorch in the same run: the same weights and images, the logits
// compared first, then rounds in turn. The rival folds too, and runs under its fastest settings: memory layout, malloc, ATen's
// instruction set, eager or frozen or optimised graphs.
// Exit codes: 0 measured, 1 the comparison is void (logits differ, rival crippled), 2 PyTorch is missing or bad arguments.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/infer_workload.h"
#include "bench/result_lines.h"
#include "bench/torch_rival.h"
#include "bench/turns.h"
#include "core/constant_weights.h"
#include "core/cpu/fma_peak.h"
#include "core/decisions.h"
#include "core/error.h"
#include "core/io/scratch_folder.h"
#include "train/decisions_file.h"
#include "train/environment.h"

namespace tessera::bench {
namespace {

constexpr double kLogitTolerance = 1e-4;  // of the largest logit
constexpr std::string_view kModes[]{"eager", "frozen", "optimized"};
constexpr std::int64_t kWarmUp = 3;  // graphs are specialised in their first two runs
constexpr double kTurnMs = 200;

struct Options {
  CommonOptions common{.rounds = 15, .results = TESSERA_BENCH_DIR "/results/infer_bench.jsonl"};
  std::string python = "/usr/bin/python3";
  std::string script = TESSERA_BENCH_DIR "/infer_bench_torch.py";
  std::string model = "all";
  std::int64_t batch = 0;  // 0: all
  std::int64_t sweep_runs = 5;
};

std::vector<InferCase> cases(const Options& options) {
  const std::vector<InferCase> models{{"resnet20", 32, 10, 1}, {"resnet18", 224, 1000, 1}, {"mobilenet_v1", 224, 1000, 1}};
  std::vector<InferCase> chosen;
  for (const InferCase& model : models) {
    for (const std::int64_t batch : {1, 32}) {
      if (options.model != "all" && options.model != model.model) continue;
      if (options.batch != 0 && options.batch != batch) continue;
      chosen.push_back({model.model, model.side, model.classes, batch});
    }
  }
  TESSERA_CHECK(!chosen.empty(), ConfigError, "infer_bench: no case has model '", options.model, "' and batch ", options.batch,
                "; models are resnet20, resnet18, mobilenet_v1 or all, batches 1 and 32");
  return chosen;
}

std::vector<double> numbers(const Value& list) {
  std::vector<double> out;
  for (const Value& item : list.as_list()) out.push_back(item.as_double());
  return out;
}

std::vector<double> time_rival(TorchRival& rival, const std::string& mode, std::int64_t count) {
  return numbers(rival.ask(str("time ", mode, ' ', count)).at("ms"));
}

// Largest difference, of the largest logit. Throws where it is above the tolerance.
double check_logits(const std::vector<float>& ours, const std::vector<double>& theirs, const std::string& rival) {
  TESSERA_CHECK(ours.size() == theirs.size(), NumericError, rival, " gives ", theirs.size(), " logits, ours are ", ours.size());
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double distance = std::abs(static_cast<double>(ours[i]) - theirs[i]);
    difference = std::isnan(distance) ? INFINITY : std::max(difference, distance);
    largest = std::max(largest, std::abs(theirs[i]));
  }
  TESSERA_CHECK(difference <= kLogitTolerance * largest, NumericError, "logits differ from those of ", rival, " by ", difference,
                ", the largest is ", largest, "; they must agree to ", kLogitTolerance, " of it");
  return difference / largest;
}

struct Chosen {
  TorchSettings settings;
  std::string mode;
  double ms = INFINITY;
  Value::List sweep;  // a row per setting and mode
};

// Short runs of every setting, each in a process of its own; the lowest median wins. All must give our logits.
Chosen sweep_settings(const TorchProgram& program, const Options& options, const std::vector<float>& logits) {
  Chosen chosen;
  for (const TorchSettings& settings : all_torch_settings()) {
    TorchRival rival(program, settings);
    for (const std::string_view name : kModes) {
      const std::string mode(name);
      const std::string shown = str("torch ", mode, ", ", to_string(settings));
      check_logits(logits, numbers(rival.ask(str("logits ", mode)).at("logits")), shown);
      time_rival(rival, mode, kWarmUp);
      const double ms = summarise(time_rival(rival, mode, options.sweep_runs)).median;
      fmt::print("  {:<60} {:8.2f} ms\n", shown, ms);
      Value& row = chosen.sweep.emplace_back(to_value(settings));
      row.set("mode", mode);
      row.set("ms", ms);
      if (ms >= chosen.ms) continue;
      chosen.settings = settings;
      chosen.mode = mode;
      chosen.ms = ms;
    }
  }
  return chosen;
}

struct Comparison {
  Samples ours, unfolded, theirs;  // medians of each round's turns
};

Comparison compare(InferWorkload& workload, TorchRival& rival, const Chosen& chosen, std::int64_t rounds) {
  // The first forward of a turn only brings caches and threads back and is not counted.
  const auto calls = 1 + std::clamp(static_cast<std::int64_t>(kTurnMs / chosen.ms), std::int64_t{1}, std::int64_t{50});
  const auto median = [](const std::vector<double>& ms) { return quantile(std::vector<double>(ms.begin() + 1, ms.end()), 0.5); };
  time_rival(rival, chosen.mode, kWarmUp);
  Comparison all;
  for (std::int64_t round = 0; round < rounds; ++round) {
    all.ours.push_back(median(workload.run(calls)));
    all.theirs.push_back(median(time_rival(rival, chosen.mode, calls)));
    all.unfolded.push_back(median(workload.run_unfolded(calls)));
  }
  return all;
}

Value row_of(const InferCase& timed, const Options& options) {
  Value row = Value::map();
  row.set("model", timed.model);
  row.set("batch", timed.batch);
  row.set("shape", str(timed.side, 'x', timed.side, "x3"));
  row.set("rounds", options.common.rounds);
  return row;
}

void measure_case(const InferCase& timed, const Options& options, const Value& surroundings) {
  fmt::print("{} batch {}\n", timed.model, timed.batch);
  const DecisionScope decisions({.measure = true});
  const ConstantWeights constant;
  const ScratchFolder folder("tessera_bench");
  InferWorkload workload(timed);
  workload.write_inputs(folder.path());
  const std::vector<float> logits = workload.logits();
  workload.run_unfolded(1);

  const TorchProgram program{options.python, options.script, folder.path(), static_cast<int>(options.common.threads)};
  Chosen chosen = sweep_settings(program, options, logits);
  TorchRival rival(program, chosen.settings);
  const std::string shown = str(chosen.mode, ", ", to_string(chosen.settings));
  const double difference = check_logits(logits, numbers(rival.ask(str("logits ", chosen.mode)).at("logits")), shown);
  const Comparison result = compare(workload, rival, chosen, options.common.rounds);
  const Samples ratio = ratios(result.theirs, result.ours);
  fmt::print("  rival: {}\n", shown);
  print_summary("  tessera", summarise(result.ours), " ms");
  print_summary("  unfolded", summarise(result.unfolded), " ms");
  print_summary("  torch", summarise(result.theirs), " ms");
  print_summary("  ratio", summarise(ratio), " x ");

  Value row = row_of(timed, options);
  row.set("tessera_ms", to_value(summarise(result.ours)));
  row.set("tessera_unfolded_ms", to_value(summarise(result.unfolded)));
  row.set("torch_ms", to_value(summarise(result.theirs)));
  row.set("ratio", to_value(summarise(ratio)));
  row.set("logit_difference", difference);
  row.set("tessera_decisions", tessera::to_value(decisions.taken()).at("decisions"));
  row.set("torch", rival.environment());
  row.set("torch_settings", to_value(chosen.settings));
  row.set("torch_mode", chosen.mode);
  row.set("torch_sweep", Value::list(std::move(chosen.sweep)));
  row.set("torch_matmul_gflops", rival.matmul_gflops());
  row.set("fma_peak_gflops", cpu::fma_peak_gflops(static_cast<int>(options.common.threads)));
  publish(options.common, surroundings, row);
}

void measure(const Options& options) {
  set_compute_threads(options.common.threads);
  const Value surroundings = describe_surroundings(options.common.threads);
  try {
    for (const InferCase& timed : cases(options)) measure_case(timed, options, surroundings);
  } catch (const TorchMissing& error) {
    throw ConfigError(str(error.what(), "; install Debian's python3-torch or name another interpreter with --python"));
  }
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("infer_bench", "times inference of folded networks against PyTorch's");
  add_common(arguments, options.common);
  arguments.text("--model", options.model, "resnet20, resnet18, mobilenet_v1 or all")
      .count("--batch", options.batch, "only this one of 1 and 32")
      .count("--sweep-runs", options.sweep_runs, "forwards of each of torch's settings")
      .text("--python", options.python, "interpreter that has torch (/usr/bin/python3)")
      .text("--script", options.script, "torch's side");
  return run_benchmark(arguments, words, [&] { measure(options); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
