// Measures how often `keep: faster` errs on the clock of this machine, in three parts.
// Against itself: a dense layer is judged against a copy of itself in --trials trials. At most one in twenty may be accepted.
// Agreement: --processes processes, one after another, judge the same layers in Tucker-2 form. Layers whose ratio is more than
// 0.05 from the ratio that the veto requires must get the same verdict in nineteen of twenty processes.
// Network: as many processes factorise a ResNet-8 under `keep: faster`, which judges each layer alone, then the network. Layers
// away from that ratio must get the same verdict in nineteen of twenty. Each process also times, as `tessera table` would, the
// network that keeps every layer that is faster alone. Where that ratio is away from the required one, the verdict on the network
// must agree with it in nineteen of twenty; fewer than half of all processes are too few to judge that. The reported ratio of a
// network that stays compressed is printed next to `table`'s.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "bench/binomial.h"
#include "bench/cases/veto_cases.h"
#include "bench/result_lines.h"
#include "compress/factorise.h"
#include "compress/pass_runner.h"
#include "compress/timing/latency.h"
#include "compress/timing/veto.h"
#include "core/config/read.h"
#include "core/device/decisions.h"
#include "core/device/device_choice.h"
#include "core/io/child_process.h"
#include "core/support/error.h"
#include "layers/conv2d.h"
#include "layers/fold.h"
#include "layers/models/model.h"
#include "layers/tucker2_conv2d.h"
#include "train/run/environment.h"

namespace tessera::bench {
namespace {

constexpr double kMostAccepted = 0.05;  // of the trials of a layer against itself
constexpr double kLeastAgreeing = 0.95;  // of the processes
constexpr double kUndecided = 0.05;  // within this distance of the required ratio, either verdict is right

bool decides(double ratio) { return std::abs(ratio - kFasterRatio) > kUndecided; }

// Parts in which a process sends answers to its parent.
constexpr const char* kAnswer = "answer";
constexpr const char* kAnswerNetwork = "answer-network";

struct Options {
  CommonOptions common{.results = TESSERA_BENCH_DIR "/results/veto_bench.jsonl"};
  std::string part = "all";
  std::int64_t trials = 200;
  std::int64_t processes = 20;
};

std::unique_ptr<Module> initialised(const Judged& layer) {
  std::unique_ptr<Module> module = layer.dense();
  initialize(*module, 1);
  return module;
}

Speed judged(const Judged& layer, Module& dense, Module& compressed) {
  const Veto veto({.batch = layer.batch, .timing = {.folded = for_inference}});
  const DecisionScope fastest({.measure = true});  // choices are made anew, as in a separate process
  return veto.judge(dense, compressed, layer.input, /*first=*/false).speed.value();
}

void against_itself(const Options& options, const Value& surroundings) {
  std::int64_t all_accepted = 0;
  std::int64_t all_trials = 0;
  for (const Judged& layer : kAgainstItself) {
    const std::unique_ptr<Module> dense = initialised(layer);
    const std::unique_ptr<Module> copy = initialised(layer);
    const std::int64_t trials = (options.trials + std::ssize(kAgainstItself) - 1) / std::ssize(kAgainstItself);
    std::int64_t accepted = 0;
    std::int64_t above_one = 0;
    std::vector<double> ratios;
    for (std::int64_t trial = 0; trial < trials; ++trial) {
      const Speed speed = judged(layer, *dense, *copy);
      accepted += speed.faster ? 1 : 0;
      above_one += speed.ratio.median > 1 ? 1 : 0;
      ratios.push_back(speed.ratio.median);
    }
    const Summary ratio = summarise(ratios);
    fmt::print("{} against itself: {} of {} accepted; told ratio {:.3f} ({:.3f}-{:.3f}), above 1 in {}\n", layer.name, accepted,
               trials, ratio.median, ratio.p10, ratio.p90, above_one);
    Value row = Value::map();
    row.set("part", "against itself");
    row.set("layer", layer.name);
    row.set("trials", trials);
    row.set("accepted", accepted);
    row.set("above_one", above_one);
    row.set("accepted_share_at_most", upper_bound(accepted, trials));  // with 95 % confidence
    row.set("ratio", to_value(ratio));
    row.set("ratios", to_value(ratios));
    publish(options.common, surroundings, row);
    all_accepted += accepted;
    all_trials += trials;
  }
  const double rate = static_cast<double>(all_accepted) / static_cast<double>(all_trials);
  print_verdict(
      fmt::format("a layer against itself: {} of {} accepted, at most {:.1f} % of all with a confidence of 95 %; {:.0f} % "
                  "allowed: {}",
                  all_accepted, all_trials, 100 * upper_bound(all_accepted, all_trials), 100 * kMostAccepted,
                  rate <= kMostAccepted ? "reached" : "missed"));
}

// What a process of agreement() prints: a line of verdicts with ratios, in the order of kAgreed.
void answer(std::int64_t threads) {
  set_compute_threads(threads);
  Value::List verdicts;
  for (const Judged& layer : kAgreed) {
    const std::unique_ptr<Module> dense = initialised(layer);
    const std::unique_ptr<Module> compressed = Tucker2Conv2d::from_dense(dynamic_cast<const Conv2d&>(*dense), layer.ranks);
    verdicts.emplace_back(to_text(judged(layer, *dense, *compressed)));
  }
  std::cout << to_json(Value::list(std::move(verdicts))) << std::endl;
}

// Starts this program with a part that answers, and returns its answer.
Value asked_of_a_process(const char* part, std::int64_t threads) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  ChildProcess child({self, "--part", part, "--threads", std::to_string(threads), "--dry-run"}, {});
  return parse_json(child.read_line(), "a process of veto_bench");
}

std::vector<Speed> speeds_of_a_process(std::int64_t threads) {
  std::vector<Speed> speeds;
  const Value verdicts = asked_of_a_process(kAnswer, threads);
  for (const Value& text : verdicts.as_list()) speeds.push_back(speed_from(text.as_string()));
  return speeds;
}

// The verdicts of several processes on one layer.
struct Verdicts {
  std::vector<double> ratios;
  std::int64_t faster = 0;
  std::vector<bool> kept = {};  // of a network's layer, process by process: whether the network's verdict keeps it too

  std::int64_t processes() const { return std::ssize(ratios); }
  std::int64_t times_kept() const { return std::ranges::count(kept, true); }
  bool counts() const { return decides(quantile(ratios, 0.5)); }
  bool agree() const { return is_one_verdict(faster) && (kept.empty() || is_one_verdict(times_kept())); }

 private:
  bool is_one_verdict(std::int64_t yes) const {
    const std::int64_t most = std::max(yes, processes() - yes);
    return static_cast<double>(most) >= kLeastAgreeing * static_cast<double>(processes());
  }
};

// Counts how many layers that are not too close to the required ratio have one verdict.
class Agreement {
 public:
  Agreement(const Options& options, const Value& surroundings, const char* part)
      : options_(options), surroundings_(surroundings), part_(part) {}

  void add(const std::string& layer, const Verdicts& verdicts) {
    const Summary ratio = summarise(verdicts.ratios);
    const bool counts = verdicts.counts();
    decided_ += counts ? 1 : 0;
    agreed_ += counts && verdicts.agree() ? 1 : 0;
    fmt::print("{}: faster in {} of {} processes{}; told ratio {:.3f} ({:.3f}-{:.3f}){}\n", layer, verdicts.faster,
               verdicts.processes(), verdicts.kept.empty() ? "" : fmt::format(", kept in {}", verdicts.times_kept()),
               ratio.median, ratio.p10, ratio.p90, counts ? "" : "; too close to 1.02 to be counted");
    Value row = Value::map();
    row.set("part", part_);
    row.set("layer", layer);
    row.set("processes", verdicts.processes());
    row.set("faster", verdicts.faster);
    if (!verdicts.kept.empty()) {
      row.set("kept", verdicts.times_kept());
      row.set("kept_by", Value::list(Value::List(verdicts.kept.begin(), verdicts.kept.end())));
    }
    row.set("counted", counts);
    row.set("ratio", to_value(ratio));
    row.set("ratios", to_value(verdicts.ratios));
    publish(options_.common, surroundings_, row);
  }
  void print() const {
    print_verdict(fmt::format("{}, {} processes: {} of {} layers away from 1.02 get one verdict in {:.0f} % of them: {}", part_,
                              options_.processes, agreed_, decided_, 100 * kLeastAgreeing,
                              decided_ > 0 && agreed_ == decided_ ? "reached" : "missed"));
  }

 private:
  const Options& options_;
  const Value& surroundings_;
  std::string part_;
  std::int64_t decided_ = 0, agreed_ = 0;
};

void agreement(const Options& options, const Value& surroundings) {
  std::vector<Verdicts> by_layer(std::size(kAgreed));
  for (std::int64_t process = 0; process < options.processes; ++process) {
    const std::vector<Speed> speeds = speeds_of_a_process(options.common.threads);
    for (std::size_t i = 0; i < by_layer.size(); ++i) {
      by_layer[i].ratios.push_back(speeds.at(i).ratio.median);
      by_layer[i].faster += speeds[i].faster ? 1 : 0;
    }
  }
  Agreement agreement(options, surroundings, "agreement");
  for (std::size_t i = 0; i < by_layer.size(); ++i) agreement.add(kAgreed[i].name, by_layer[i]);
  agreement.print();
}

constexpr std::int64_t kNetworkBatch = 32;
constexpr std::int64_t kTableRounds = 30;

const Shape kNetworkInput{1, 32, 32, 3};

std::unique_ptr<Module> resnet8() {
  std::unique_ptr<Module> network = build_model(named_model("resnet8", 10), kNetworkInput);
  initialize(*network, 1);
  return network;
}

// `veto` null: all layers stay factored.
PassReport factorise(std::unique_ptr<Module>& network, Value layers, const Veto* veto) {
  Value config = parse_json(R"({"format": "tucker2", "ranks": {"macs": 0.5, "per": "layer"}})", "veto_bench");
  config.set("layers", std::move(layers));
  if (veto == nullptr) config.set("keep", "always");
  FactorisePass pass(read<FactoriseConfig>(config));
  return run_pass(network, pass, kNetworkInput, veto);
}

// What a process of network() prints: for each layer its path, the text of its speed alone and whether it is kept. Also the
// network's reported speed, and the ratios that `tessera table` measures of the network as judged (`table`) and of the one that
// keeps all layers that are faster alone (`alone`).
void answer_network(std::int64_t threads) {
  set_compute_threads(threads);
  std::unique_ptr<Module> network = resnet8();
  const std::unique_ptr<Module> dense = for_inference(*network);
  const Veto veto({.batch = kNetworkBatch, .timing = {.folded = for_inference}});
  const DecisionScope fastest({.measure = true});
  const PassReport report = factorise(network, "layer*", &veto);
  Value layers = Value::list();
  Value faster_alone = Value::list();
  for (const LayerReport& layer : report.layers) {
    if (!layer.speed) continue;
    Value told = Value::map();
    told.set("path", layer.path);
    told.set("speed", to_text(*layer.speed));
    told.set("kept", !layer.stays_dense());
    layers.as_list().push_back(std::move(told));
    if (layer.speed->faster) faster_alone.as_list().emplace_back(layer.path);
  }
  Value answer = Value::map();
  answer.set("layers", std::move(layers));
  answer.set("warned", warnings_printed() > 0);
  if (!faster_alone.as_list().empty()) {
    std::unique_ptr<Module> all = resnet8();
    factorise(all, std::move(faster_alone), nullptr);
    const std::unique_ptr<Module> judged = for_inference(*network), whole = for_inference(*all);
    Module* const networks[]{dense.get(), judged.get(), whole.get()};
    const PairedTiming timing = time_networks(networks, {kNetworkBatch, 32, 32, 3}, kTableRounds);
    answer.set("alone", timing.speedup.at(2).median);
    if (report.speed) {
      answer.set("network", to_text(*report.speed));
      answer.set("table", timing.speedup.at(1).median);
    }
  }
  std::cout << to_json(answer) << std::endl;
}

struct NetworkRatios {
  std::vector<double> told, table;  // in the processes that keep a layer
  // Of the network that keeps all layers that are faster alone, in the processes that have such a layer.
  std::vector<double> alone;
  std::vector<bool> kept;  // whether each of the same processes keeps a layer
  std::int64_t disturbed = 0;  // processes in which other programs had the cores during a timing
};

// Adds the ratio that `keep: faster` reports to the row, next to `tessera table`'s.
void compare_with_table(const NetworkRatios& ratios, Value& row) {
  if (ratios.told.empty()) return print_verdict("network: no process keeps a layer");
  std::vector<double> apart;
  for (std::size_t i = 0; i < ratios.told.size(); ++i) apart.push_back(ratios.told[i] / ratios.table[i]);
  const Summary told = summarise(ratios.told), table = summarise(ratios.table), between = summarise(apart);
  fmt::print(
      "the network: told {:.3f} ({:.3f}-{:.3f}), by `table` {:.3f} ({:.3f}-{:.3f}), told over table {:.3f} ({:.3f}-{:.3f})\n",
      told.median, told.p10, told.p90, table.median, table.p10, table.p90, between.median, between.p10, between.p90);
  row.set("ratio", to_value(told));
  row.set("ratios", to_value(ratios.told));
  row.set("table_ratio", to_value(table));
  row.set("table_ratios", to_value(ratios.table));
  row.set("told_over_table", to_value(between));
}

// Whether the verdict on the network agrees with its ratio in the processes where that ratio decides.
void report_network(const Options& options, const Value& surroundings, const NetworkRatios& ratios) {
  fmt::print("the network: other programs disturbed {} of {} processes\n", ratios.disturbed, options.processes);
  std::int64_t decided = 0, agreed = 0;
  for (std::size_t i = 0; i < ratios.alone.size(); ++i) {
    if (!decides(ratios.alone[i])) continue;
    ++decided;
    agreed += ratios.kept[i] == (ratios.alone[i] > kFasterRatio) ? 1 : 0;
  }
  Value row = Value::map();
  row.set("part", "network");
  row.set("layer", "all");
  row.set("processes", options.processes);
  row.set("faster", std::ssize(ratios.told));
  row.set("disturbed", ratios.disturbed);
  row.set("ratios_of_all_faster_alone", to_value(ratios.alone));
  row.set("kept_by", Value::list(Value::List(ratios.kept.begin(), ratios.kept.end())));
  row.set("counted", decided);
  row.set("agreed", agreed);
  compare_with_table(ratios, row);
  publish(options.common, surroundings, row);
  const bool agree = static_cast<double>(agreed) >= kLeastAgreeing * static_cast<double>(decided);
  const char* const verdict = 2 * decided < options.processes ? "too few to judge" : agree ? "reached" : "missed";
  print_verdict(
      fmt::format("network: its ratio is away from 1.02 in {} of {} processes, and the verdict agrees with it in {} of "
                  "these, {:.0f} % asked: {}",
                  decided, options.processes, agreed, 100 * kLeastAgreeing, verdict));
}

void network(const Options& options, const Value& surroundings) {
  std::map<std::string, Verdicts> by_layer;
  NetworkRatios ratios;
  for (std::int64_t process = 0; process < options.processes; ++process) {
    const Value answer = asked_of_a_process(kAnswerNetwork, options.common.threads);
    for (const Value& layer : answer.at("layers").as_list()) {
      Verdicts& verdicts = by_layer[layer.at("path").as_string()];
      const Speed speed = speed_from(layer.at("speed").as_string());
      verdicts.ratios.push_back(speed.ratio.median);
      verdicts.faster += speed.faster ? 1 : 0;
      verdicts.kept.push_back(layer.at("kept").as_bool());
    }
    ratios.disturbed += answer.at("warned").as_bool() ? 1 : 0;
    if (const Value* alone = answer.find("alone"); alone != nullptr) {
      ratios.alone.push_back(alone->as_double());
      ratios.kept.push_back(answer.find("network") != nullptr);
    }
    if (answer.find("network") == nullptr) continue;
    ratios.told.push_back(speed_from(answer.at("network").as_string()).ratio.median);
    ratios.table.push_back(answer.at("table").as_double());
  }
  Agreement agreement(options, surroundings, "network");
  for (const auto& [path, verdicts] : by_layer) agreement.add(path, verdicts);
  report_network(options, surroundings, ratios);
  agreement.print();
}

void measure(const Options& options) {
  if (options.part == kAnswer) return answer(options.common.threads);
  if (options.part == kAnswerNetwork) return answer_network(options.common.threads);
  constexpr std::string_view kParts[]{"self", "agreement", "network"};
  const auto wants = [&](std::string_view part) { return options.part == part || options.part == "all"; };
  TESSERA_CHECK(std::ranges::any_of(kParts, wants), ConfigError, "veto_bench: there is no part '", options.part,
                "'; there are self, agreement, network and all");
  set_compute_threads(options.common.threads);
  const Value surroundings = describe_surroundings(options.common.threads);
  if (wants("self")) against_itself(options, surroundings);
  if (wants("agreement")) agreement(options, surroundings);
  if (wants("network")) network(options, surroundings);
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("veto_bench", "counts how often `keep: faster` errs");
  add_common(arguments, options.common);
  arguments.text("--part", options.part, "self, agreement, network or all");
  arguments.count("--trials", options.trials, "of layers against themselves, in all");
  arguments.count("--processes", options.processes, "that judge the same layers");
  return run_benchmark(arguments, words, [&] { measure(options); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
