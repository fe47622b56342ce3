// Times training in several processes of this machine, as mpirun starts them, against one process with as many threads. Both run
// the same experiment file by the program `tessera` in this program's folder, run after run in turn: ResNet-20 on random
// images, batch 128, and the GPT of four blocks on random text, batch 16. The time of a step is the median of the run's lines in
// timing.jsonl, without the first ones. Target: 0.9 of the single process's speed. In turn with the runs, `tessera plan --ranks`
// predicts that step. Target: within 15 % of the measured one. mpirun must be on the PATH. As root it requires
// OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>

#include "bench/result_lines.h"
#include "bench/turns.h"
#include "core/config/value.h"
#include "core/io/scratch_folder.h"
#include "core/io/vfs.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr double kTarget = 0.9;
constexpr double kPlanWithin = 0.15;
constexpr std::int64_t kLogEvery = 5;  // steps per line of timing.jsonl
constexpr std::size_t kWarmUp = 2;  // lines that are left out

struct Options {
  CommonOptions common{.rounds = 5, .results = TESSERA_BENCH_DIR "/results/ranks_bench.jsonl"};
  std::string model = "all";
  std::int64_t ranks = 2;
  std::int64_t steps = 60;
  std::string bandwidth = "40G", latency = "10us";  // between processes of one machine, for the prediction
};

std::string random_bytes(std::mt19937& random, std::size_t count, unsigned kinds, char first) {
  std::string bytes(count, first);
  for (char& byte : bytes) byte = static_cast<char>(static_cast<unsigned char>(first) + random() % kinds);
  return bytes;
}

// Writes files in CIFAR-10's binary format.
void write_images(const ScratchFolder& folder) {
  constexpr int kRecords = 10000, kPixels = 3072;
  std::mt19937 random(1);
  const std::string pixels = random_bytes(random, kPixels * 64, 256, 0);
  for (const char* name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
    std::string records;
    for (int i = 0; i < kRecords; ++i) {
      records += static_cast<char>(i % 10);
      records += pixels.substr(static_cast<std::size_t>(random() % 63 * kPixels + random() % kPixels), kPixels);
    }
    write_file_atomically(real_vfs(), folder / str(name, ".bin"), records);
  }
}

void write_text(const ScratchFolder& folder) {
  std::mt19937 random(1);
  write_file_atomically(real_vfs(), folder / "text.txt", random_bytes(random, 1000000, 26, 'a'));
}

struct Workload {
  const char* name;
  std::int64_t batch;
  void (*write_data)(const ScratchFolder&);
  const char* blocks;  // blocks of the experiment file
};
const Workload kWorkloads[]{
    {"resnet20", 128, write_images, R"(data: {name: cifar10, root: ., batch: 128, augment: [{pad_crop: 4}, {flip: horizontal}]}
model: {name: resnet20}
optimizer: {name: sgd, lr: 0.1, momentum: 0.9, weight_decay: 1.0e-4}
)"},
    {"gpt", 16, write_text,
     R"(data: {name: text, files: [text.txt], split: [90, 5, 5], tokenizer: bytes, sequence: 256, batch: 16}
model: {name: gpt, layers: 4, width: 128, heads: 4, length: 256, vocabulary: 256}
optimizer: {name: adamw, lr: 1.0e-3}
)"}};

// Milliseconds per step, from the run's timing records.
double step_ms(const std::string& run, std::int64_t batch) {
  const std::string path = run + "/timing.jsonl";
  std::istringstream lines(real_vfs().read_file(path));
  std::vector<double> ms;
  for (std::string line; std::getline(lines, line);) {
    const Value record = parse_json(line, path);
    const Value* const rate = record.find("samples_per_second");
    if (rate != nullptr) ms.push_back(1e3 * static_cast<double>(batch) / rate->as_double());
  }
  TESSERA_CHECK(ms.size() > kWarmUp, Error, path, ": has ", ms.size(), " timed lines; needs more than ", kWarmUp);
  return quantile({ms.begin() + kWarmUp, ms.end()}, 0.5);
}

class TimedRuns {
 public:
  TimedRuns(const Workload& workload, const Options& options) : workload_(workload), options_(options) {
    workload.write_data(folder_);
  }

  // Trains with `ranks` processes, which share the threads.
  double train(std::int64_t ranks) {
    const std::string name = str("ranks", ranks, "-", ++runs_);
    const std::string started = ranks == 1 ? "" : str("mpirun -n ", ranks, " --bind-to none ");
    run(str(started, program(), " train '", experiment(name, ranks), "' --runs '", folder_ / "runs", "'"), name);
    return step_ms(folder_ / ("runs/" + name + "/1"), workload_.batch);
  }

  // The milliseconds that `tessera plan` predicts for a step of train(options.ranks).
  double plan() {
    const std::string name = str("plan-", ++runs_);
    const std::string printed = run(str(program(), " plan '", experiment(name, options_.ranks), "' --json --ranks ",
                                        options_.ranks, " --bandwidth ", options_.bandwidth, " --latency ", options_.latency),
                                    name);
    return parse_json(printed, "tessera plan").at("scaling").at("rows").as_list().back().at("step_ms").as_double();
  }

 private:
  static std::string program() {
    return str("'", (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tessera").string(), "'");
  }

  // Writes an experiment for processes that share the threads. Returns its path.
  std::string experiment(const std::string& name, std::int64_t ranks) const {
    const std::string file = folder_ / (name + ".yaml");
    write_file_atomically(
        real_vfs(), file,
        str("version: 1\nname: ", name, "\nseed: 1\n", workload_.blocks, "threads: {compute: ", options_.common.threads / ranks,
            ", loader: 1}\nlog_every: ", kLogEvery, "\nstages: [{name: main, train: ", options_.steps, "s}]\n"));
    return file;
  }

  // Runs a command and returns what it prints.
  std::string run(const std::string& command, const std::string& name) const {
    const std::string out = folder_ / (name + ".out"), errors = folder_ / (name + ".errors");
    const int status = std::system(str(command, " > '", out, "' 2> '", errors, "'").c_str());
    std::string printed = real_vfs().read_file(out);
    TESSERA_CHECK(status == 0, Error, command, " failed:\n", printed, real_vfs().read_file(errors));
    return printed;
  }

  const Workload& workload_;
  const Options& options_;
  ScratchFolder folder_{"tessera_bench"};
  int runs_ = 0;
};

void measure_workload(const Workload& workload, const Options& options, const Value& surroundings) {
  TimedRuns runs(workload, options);
  // No times alone: each run is of processes of its own, which no other side's run can disturb.
  const std::vector<Samples> samples = interleave(3, options.common.rounds, 0, [&](std::size_t side) {
    return side == 2 ? runs.plan() : runs.train(side == 0 ? options.ranks : 1);
  });
  const Samples &together = samples[0], &alone = samples[1], &planned = samples[2];
  const Value ratio = ratio_value(alone, together), prediction = ratio_value(planned, together);
  fmt::print("{}: {} ranks of {} thread(s) {:.1f} ms, one process {:.1f} ms, {}; planned {:.1f} ms\n", workload.name,
             options.ranks, options.common.threads / options.ranks, together.median(), alone.median(), ratio_text(ratio),
             planned.median());
  Value row = Value::map();
  row.set("model", workload.name);
  row.set("batch", workload.batch);
  row.set("ranks", options.ranks);
  row.set("steps", options.steps);
  row.set("rounds", options.common.rounds);
  row.set("ranks_ms", to_value(together));
  row.set("alone_ms", to_value(alone));
  row.set("ratio", ratio);
  row.set("target", kTarget);
  row.set("bandwidth", options.bandwidth);
  row.set("latency", options.latency);
  row.set("planned_ms", to_value(planned));
  row.set("planned_ratio", prediction);
  row.set("planned_within", kPlanWithin);
  publish(options.common, surroundings, row);
  print_verdict(fmt::format("{}: {:.3f}x the speed of one process, target {}: {}", workload.name, counted(ratio), kTarget,
                            counted(ratio) >= kTarget ? "reached" : "missed"));
  const double off = planned.median() / together.median() - 1;
  print_verdict(fmt::format("{}: plan is {:+.1f} % from the measured step, target {} %: {}", workload.name, 100 * off,
                            100 * kPlanWithin, std::abs(off) <= kPlanWithin ? "reached" : "missed"));
}

void measure(const Options& options) {
  TESSERA_CHECK(options.ranks > 1 && options.common.threads % options.ranks == 0, ConfigError, "ranks_bench: --ranks is ",
                options.ranks, "; needs 2 or more that divide --threads ", options.common.threads);
  TESSERA_CHECK(options.steps >= static_cast<std::int64_t>(kWarmUp + 1) * kLogEvery, ConfigError, "ranks_bench: --steps is ",
                options.steps, "; needs at least ", static_cast<std::int64_t>(kWarmUp + 1) * kLogEvery);
  const Value surroundings = describe_surroundings(options.common.threads);
  bool known = false;
  for (const Workload& workload : kWorkloads) {
    if (options.model != "all" && options.model != workload.name) continue;
    known = true;
    measure_workload(workload, options, surroundings);
  }
  TESSERA_CHECK(known, ConfigError, "ranks_bench: there is no model '", options.model, "'; there are resnet20, gpt and all");
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("ranks_bench", "times training in several processes beside one process of as many threads");
  add_common(arguments, options.common);
  arguments.text("--model", options.model, "resnet20, gpt or all");
  arguments.count("--ranks", options.ranks, "processes, which share the threads");
  arguments.count("--steps", options.steps, "of each run");
  arguments.text("--bandwidth", options.bandwidth, "between processes, for the prediction");
  arguments.text("--latency", options.latency, "the same");
  return run_benchmark(arguments, words, [&] { measure(options); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
