// Times inference of named networks, with batch norm folded, against PyTorch in the same run. Both have the same weights and
// images. The logits are compared first, then the sides take turns. The rival folds too and has its fastest settings: memory
// layout, malloc, ATen's instruction set, what waiting threads do, one thread or all for one image, and eager, frozen, optimised
// or compiled graphs. A short sweep chooses up to three within 1.5 times its best for all rounds. Their fastest is the rival.
// Exit codes: 0 measured, 1 the comparison is void (logits differ, rival crippled), 2 PyTorch is missing or bad arguments.
#include <fmt/format.h>

#include "bench/infer_workload.h"
#include "bench/result_lines.h"
#include "bench/rivals/modes_rival.h"
#include "bench/turns.h"
#include "core/cpu/fma_peak.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/io/scratch_folder.h"
#include "core/support/error.h"
#include "train/run/decisions_file.h"
#include "train/run/environment.h"

namespace tessera::bench {
namespace {

constexpr double kTarget = 1.1;  // PyTorch 1's time over ours, at least

struct Options {
  CommonOptions common{.rounds = 15, .results = TESSERA_BENCH_DIR "/results/infer_bench.jsonl"};
  TorchOptions torch{.script = TESSERA_BENCH_DIR "/infer_bench_torch.py"};
  std::string model = "all";
  std::int64_t batch = 0;  // 0: all
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

using Rivals = std::vector<std::unique_ptr<ModesRival>>;

struct Comparison {
  FinalistTimes times;
  Samples unfolded;
};

Comparison compare(InferWorkload& workload, const Rivals& rivals, std::int64_t rounds) {
  std::vector<SelfTimed> sides{[&](std::int64_t count) { return workload.run(count); },
                               [&](std::int64_t count) { return workload.run_unfolded(count); }};
  for (const auto& rival : rivals) sides.emplace_back([&rival](std::int64_t count) { return rival->run(count); });
  const std::vector<Samples> samples = time_in_turns(sides, rounds, calls_per_turn(sides));
  return {{samples[0], {samples.begin() + 2, samples.end()}}, samples[1]};
}

Value describe_run(const InferCase& timed, const Options& options) {
  Value row = Value::map();
  row.set("model", timed.model);
  row.set("batch", timed.batch);
  row.set("shape", str(timed.side, 'x', timed.side, "x3"));
  row.set("precision", "f32");
  row.set("rounds", options.common.rounds);
  row.set("sweep_runs", options.torch.sweep_runs);
  return row;
}

void report(Value& row, const Comparison& result, const std::vector<ModeWay>& finalists, const Rivals& rivals) {
  report_times(row, result.times, finalists);
  print_summary("  unfolded", summarise(result.unfolded.rounds), " ms");
  row.set("tessera_unfolded_ms", to_value(result.unfolded));
  row.set("logit_difference", rivals[result.times.best]->value_difference());
  const Value& torch = rivals[result.times.best]->torch().environment();
  row.set("torch", torch);
  if (torch.at("version").as_string().starts_with("1.")) row.set("target", kTarget);
}

void measure_case(const InferCase& timed, const Options& options, const Value& surroundings) {
  fmt::print("{} batch {}\n", timed.model, timed.batch);
  const DecisionScope decisions({.measure = true});
  const ConstantWeights constant;
  const ScratchFolder folder("tessera_bench");
  InferWorkload workload(timed);
  workload.write_inputs(folder.path());
  const std::vector<float> logits = workload.logits();

  const TorchProgram program{options.torch.python, options.torch.script, folder.path(), static_cast<int>(options.common.threads)};
  const auto swept = sweep_ways(program, {.least_runs = options.torch.sweep_runs, .one_thread = timed.batch == 1}, logits);
  Rivals rivals;
  for (const ModeWay& way : swept.finalists) rivals.push_back(std::make_unique<ModesRival>(program, way, logits));
  const std::vector<FairProduct> products = fair_products(rivals, cpu::fma_peak_gflops);
  const Comparison result = compare(workload, rivals, options.common.rounds);

  Value row = describe_run(timed, options);
  report(row, result, swept.finalists, rivals);
  row.set("tessera_decisions", tessera::to_value(decisions.taken()).at("decisions"));
  row.set("torch_sweep", swept.rows);
  set_product(row, products[result.times.best]);
  publish(options.common, surroundings, row);
}

void measure(const Options& options) {
  set_compute_threads(options.common.threads);
  const Value surroundings = describe_surroundings(options.common.threads);
  for (const InferCase& timed : cases(options)) measure_case(timed, options, surroundings);
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("infer_bench", "times inference of folded networks against PyTorch's");
  add_common(arguments, options.common);
  arguments.text("--model", options.model, "resnet20, resnet18, mobilenet_v1 or all")
      .count("--batch", options.batch, "only this one of 1 and 32");
  add_torch(arguments, options.torch);
  return run_benchmark(arguments, words, [&] { or_explain_missing_torch([&] { measure(options); }); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
