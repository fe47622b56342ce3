// bench: times a network layer by layer.
#include <iostream>
#include <memory>

#include "cli/output_file.h"
#include "cli/verbs.h"
#include "core/support/error.h"
#include "train/report/bench_report.h"

namespace tessera::cli {
namespace {

struct BenchArguments {
  BenchOptions options;
  std::string phase = "inference";
  std::string csv;
  bool json = false;
};

int bench(BenchArguments arguments) {
  check_output("--csv", arguments.csv);
  arguments.options.phase = phase_named(arguments.phase);
  BenchNetwork network = load_bench_network(real_vfs(), arguments.options);
  const std::string next = network.next;
  const BenchReport report = run_bench(std::move(network), arguments.options,
                                       [](const std::string& what) { std::cerr << "timing " << what << std::endl; });
  std::cout << (arguments.json ? to_json(to_value(report), 2) + "\n" : to_text(report));
  if (!arguments.csv.empty()) {
    write_file_atomically(real_vfs(), arguments.csv, to_csv(report));
    (arguments.json ? std::cerr : std::cout) << "wrote " << arguments.csv << '\n';
  }
  if (!arguments.json) std::cout << "next: " << next << '\n';
  return kDone;
}

}  // namespace

void add_bench(Verb program) {
  const Verb verb = program.add("bench", "Time a network layer by layer, compressed layers beside their dense originals");
  auto arguments = std::make_shared<BenchArguments>();
  BenchOptions& options = arguments->options;
  verb.argument("target", options.target, "run folder, experiment file, or a model's name").required();
  verb.argument(
      "overrides", options.overrides,
      "key=value: of a model those of its block (classes=1000), of an experiment file any, of a run report.latency.batch and "
      "threads.compute");
  verb.argument("--batch", options.batch, "samples at once, e.g. 1,32; default: report.latency.batch");
  verb.argument("--threads", options.threads, "compute threads, e.g. 1,2; default: threads.compute; of the CPU only");
  verb.argument("--device", options.device, "auto, cpu, cuda or cuda:N; default: the experiment's, auto for a model's name");
  verb.argument("--phase", arguments->phase,
                "inference: a forward; decode: one more position of a text, those in front of it cached; training: a forward "
                "and its backward")
      .one_of(phase_names());
  verb.argument("--precision", options.precision,
                "f32, tf32, bf16 or f16, as the device has it; default: the experiment's, f32 for a model's name");
  verb.argument("--rounds", options.rounds, "timings of each layer and of the network").between(6, 100000);
  verb.argument(
      "--input", options.input,
      "channels, height and width of an image, e.g. 3x224x224, or positions of a text, e.g. 256; default: the run's or the "
      "data's, or the usual ones");
  verb.argument("--at", options.at, "of a run: stage name, global step, or best; default: the newest checkpoint");
  verb.argument("--csv", arguments->csv, "file to write the rows to; docs/bench.md lists the columns");
  verb.flag("--json", arguments->json, "for another program to read; docs/json.md lists the keys");
  verb.footer(
      "Examples: tessera bench runs/quickstart/1 --batch 1,128 --threads 1,2\n"
      "          tessera bench runs/quickstart/1 --phase training --csv times.csv\n"
      "          tessera bench resnet18 --batch 1,32 --input 3x224x224 classes=1000");
  verb.runs([arguments] { return bench(*arguments); });
}

}  // namespace tessera::cli
