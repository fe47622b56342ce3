// plan: what an experiment will do and need, without training.
#include "train/plan/plan.h"

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/file_verb.h"
#include "cli/neighbours.h"
#include "compress/report.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/plan/scaling_plan.h"
#include "train/run/decisions_file.h"

namespace tessera::cli {
namespace {

using Count = long long;  // the type that %lld of printf takes

struct PlanArguments : FileArguments {
  std::int64_t ranks = 1;
  std::int64_t ranks_per_machine = 0;
  std::string bandwidth, latency;
  std::string decisions;
  std::string neighbour;  // the path that be_neighbour() reads; set only in such a process
};

std::string mib(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1024.0 * 1024.0));
  return text;
}

void print_trace(const Trace& trace, const Cost& total) {
  std::printf("%-32s %-16s %-20s %-20s %12s %14s\n", "layer", "kind", "input", "output", "parameters", "MACs");
  for (const LayerCost& layer : trace) {
    std::printf("%-32s %-16s %-20s %-20s %12lld %14lld\n", layer.path.c_str(), layer.kind.c_str(), str(layer.input).c_str(),
                str(layer.output).c_str(), Count{layer.parameters}, Count{layer.macs});
  }
  std::printf("%-32s %-16s %-20s %-20s %12lld %14lld\n", "total", "", "", "", Count{total.parameters}, Count{total.macs});
}

// A table with one column per rule and one row per layer, then a row each for the parameters and the MACs kept.
std::string rules_text(const RuleComparison& comparison) {
  const auto percent = [](double fraction) { return formatted("%.1f %%", 100 * fraction); };
  std::vector<std::string> header{"ranks by"}, parameters{"parameters kept"}, macs{"MACs kept"};
  for (const RuleChoice& rule : comparison.rules) {
    header.push_back(rule.rule);
    parameters.push_back(percent(rule.parameters_kept));
    macs.push_back(percent(rule.macs_kept));
  }
  std::vector<std::vector<std::string>> rows{header};
  for (std::size_t i = 0; i < comparison.layers.size(); ++i) {
    std::vector<std::string>& row = rows.emplace_back(1, comparison.layers[i]);
    for (const RuleChoice& rule : comparison.rules) row.push_back(rule.ranks[i]);
  }
  rows.push_back(std::move(parameters));
  rows.push_back(std::move(macs));
  return aligned(rows, std::vector<bool>(header.size(), false));
}

void print_passes(const StagePlan& stage) {
  for (const PassPlan& plan : stage.passes) {
    std::printf("%s (ranks chosen here from the initial weights; a run chooses them from the trained ones):\n",
                plan.report.pass.c_str());
    std::cout << summary(plan.report) << '\n';
    for (const RanksPlan& ranks : plan.ranks) {
      std::printf("asked %s: %lld of %lld layers changed, %.1f %% of parameters and %.1f %% of MACs kept\n", ranks.asked.c_str(),
                  Count{ranks.changed}, Count{ranks.layers}, 100 * ranks.parameters_kept, 100 * ranks.macs_kept);
    }
    if (!plan.rules.layers.empty()) std::cout << rules_text(plan.rules);
  }
  if (stage.only_faster) {
    std::printf(
        "keep faster: a layer that a clock does not find faster stays dense; memory and checkpoints are of the compressed\n"
        "or the dense network, whichever needs more\n");
  }
  print_trace(stage.layers, stage.cost);
}

void print_schedule(const Plan& plan, const SchedulePlan& schedule) {
  std::printf("train: %lld steps of %lld samples = %g epochs of %lld steps\n", Count{schedule.steps}, Count{plan.batch},
              schedule.epochs, Count{plan.steps_per_epoch});
  std::printf("learning rate (%s): first %g, peak %g, last %g; ", schedule.name.c_str(), schedule.first_lr, schedule.peak_lr,
              schedule.last_lr);
  if (schedule.warmup_steps > 0) {
    std::printf("warm-up ends after %lld steps\n", Count{schedule.warmup_steps});
  } else {
    std::printf("no warm-up\n");
  }
}

void print_memory(const MemoryPlan& memory) {
  std::printf("memory at the peak of a training step: %s\n", mib(memory.peak()).c_str());
  const std::pair<const char*, std::int64_t> parts[]{{"data set", memory.data_set},
                                                     {"loader's batches", memory.loader},
                                                     {"weights and buffers", memory.weights},
                                                     {"optimiser", memory.optimizer},
                                                     {"hooks", memory.hooks},
                                                     {"copy being saved", memory.snapshot},
                                                     {"gradients", memory.gradients},
                                                     {"saved activations", memory.activations}};
  for (const auto& [name, bytes] : parts) std::printf("  %-24s %12s\n", name, mib(bytes).c_str());
  const char* rest = memory.temporaries >= 0 ? "temporaries" : "not alive at once";
  std::printf("  %-24s %12s\n", rest, mib(memory.temporaries).c_str());
}

void print_disk(const DiskPlan& disk) {
  std::printf("checkpoints: %s at the stage's end", mib(disk.end_bytes).c_str());
  const std::int64_t others = disk.best + disk.replaced + disk.newest;
  if (others > 0) {
    std::printf(", at most %lld of %s beside it (%lld best, %lld newest%s)", Count{others}, mib(disk.training_bytes).c_str(),
                Count{disk.best}, Count{disk.newest}, disk.replaced > 0 ? ", 1 best until a later stage's" : "");
  }
  std::printf("; %s on disk\n", mib(disk.bytes()).c_str());
}

void print_scaling(const ScalingPlan& plan) {
  std::vector<std::vector<std::string>> rows{{"ranks", "samples each", "at once here", "computing ms", "exchange ms",
                                              "exposed ms", "(tree ms)", "step ms", "speed-up", "efficiency"}};
  for (const ScalingRow& row : plan.rows) {
    const auto ms = [](double value) { return formatted("%.2f", value); };
    rows.push_back({str(row.ranks), str(row.samples), str(row.together), ms(row.compute_ms), ms(row.exchange_ms),
                    ms(row.exposed_ms), ms(row.tree_ms), ms(row.step_ms()), formatted("%.2fx", row.speedup),
                    formatted("%.0f %%", 100 * row.efficiency())});
  }
  std::printf("\na step of %s in several processes: gradients of %s in %lld %s\n", plan.stage.c_str(),
              mib(plan.gradient_bytes).c_str(), Count{plan.messages}, plan.messages == 1 ? "message" : "messages");
  std::cout << aligned(rows, std::vector<bool>(rows.front().size(), true));
}

std::optional<ScalingPlan> scaling(const Experiment& experiment, const PlanArguments& arguments) {
  const bool named = !arguments.bandwidth.empty() || !arguments.latency.empty();
  if (arguments.ranks == 1) {
    TESSERA_CHECK(!named && arguments.ranks_per_machine == 0, ConfigError,
                  "--bandwidth, --latency and --ranks-per-machine are of several --ranks; say how many there are");
    return std::nullopt;
  }
  TESSERA_CHECK(!arguments.bandwidth.empty() && !arguments.latency.empty(), ConfigError,
                "--ranks: needs the network between them, such as --bandwidth 25G --latency 10us");
  const Interconnect between{parse_latency(arguments.latency), parse_bandwidth(arguments.bandwidth)};
  NeighbourProcesses neighbours;
  return plan_scaling(experiment, {arguments.ranks, arguments.ranks_per_machine}, between, &neighbours);
}

int plan(const PlanArguments& arguments) {
  const Experiment experiment = load_experiment(arguments.config, arguments.overrides);
  if (!arguments.neighbour.empty()) return be_neighbour(experiment, arguments.ranks, arguments.neighbour);
  std::optional<DecisionMap> choices;
  if (!arguments.decisions.empty()) choices = read_decisions(real_vfs(), arguments.decisions);
  const std::optional<ScalingPlan> several = scaling(experiment, arguments);
  const Plan plan = make_plan(experiment, choices ? &*choices : nullptr);
  if (arguments.json) {
    Value keys = to_value(plan);
    if (several) keys.set("scaling", write(*several));
    std::cout << to_json(keys, 2) << '\n';
    return kDone;
  }
  std::printf("data: %s, %lld training, %lld validation, %lld test samples of %s\n", plan.data.c_str(), Count{plan.train_samples},
              Count{plan.val_samples}, Count{plan.test_samples}, str(plan.input).c_str());
  std::printf("device: %s, precision %s\n", plan.device.c_str(), plan.precision.c_str());
  print_trace(plan.layers, plan.cost);
  std::printf("weights and buffers on disk: %.1f KiB\n", static_cast<double>(plan.cost.weight_bytes) / 1024.0);
  for (const StagePlan& stage : plan.stages) {
    std::printf("\nstage %s\n", stage.name.c_str());
    if (!stage.passes.empty()) print_passes(stage);
    if (stage.schedule) print_schedule(plan, *stage.schedule);
    if (stage.admm) std::cout << describe(*stage.admm) << '\n';
    if (stage.memory) print_memory(*stage.memory);
    print_disk(stage.disk);
  }
  std::printf("\nin all: memory %s, checkpoints at most %s\n", mib(plan.memory_peak()).c_str(), mib(plan.disk_bytes()).c_str());
  if (several) print_scaling(*several);
  std::cout << "next: tessera train " << arguments.config << '\n';
  return kDone;
}

}  // namespace

void add_plan(Verb program) {
  const Verb verb = program.add("plan", "Print shapes, parameters, MACs, memory, disk and schedules without training");
  auto arguments = std::make_shared<PlanArguments>();
  add_file_arguments(verb, *arguments);
  verb.argument("--decisions", arguments->decisions,
                "decisions.json of a run: memory by its choices; others are measured, as train does");
  verb.argument("--ranks", arguments->ranks, "also predict a step in so many processes, from steps timed here").between(1, 4096);
  verb.argument("--bandwidth", arguments->bandwidth, "between them, in each direction: 25G for 25 Gbit/s");
  verb.argument("--latency", arguments->latency, "of a message between them: 10us");
  verb.argument("--ranks-per-machine", arguments->ranks_per_machine,
                "0: as many as it has processors for with threads.compute, one where that is not set")
      .between(0, 4096);
  verb.argument(kNeighbourOption, arguments->neighbour, "computes beside another process that is timed").hidden();
  verb.footer("Example: tessera plan configs/quickstart.yaml --ranks 8 --bandwidth 25G --latency 10us");
  verb.runs([arguments] { return plan(*arguments); });
}

}  // namespace tessera::cli
