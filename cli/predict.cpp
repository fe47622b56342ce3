// predict: prints a trained network's answers for files that nobody labelled.
#include <iostream>
#include <limits>
#include <memory>
#include <vector>

#include "cli/output_file.h"
#include "cli/verbs.h"
#include "core/config/read.h"
#include "core/io/npy.h"
#include "train/compute_threads.h"
#include "train/report/predict.h"

namespace tessera::cli {
namespace {

struct PredictArguments {
  PredictOptions options;
  std::int64_t threads = -1;
  std::string npy;
  bool json = false;
};

int predict_inputs(PredictArguments arguments) {
  check_output("--npy", arguments.npy);
  check_no_input("--npy", arguments.npy, arguments.options.inputs);
  if (arguments.threads >= 0) arguments.options.threads = arguments.threads;
  std::vector<float> scores;  // of the lines without an error; the others become NaN below, once the row length is known
  std::vector<bool> told;
  const PredictSummary summary =
      predict(real_vfs(), arguments.options, [&](const Predicted& predicted, std::span<const float> row) {
        std::cout << (arguments.json ? to_json(write(predicted)) : to_text(predicted)) << '\n' << std::flush;
        if (arguments.npy.empty()) return;
        scores.insert(scores.end(), row.begin(), row.end());
        told.push_back(!row.empty());
      });
  if (!arguments.npy.empty()) {
    std::vector<float> all;
    auto next = scores.begin();
    for (const bool has_scores : told) {
      if (has_scores) {
        all.insert(all.end(), next, next + summary.answers);
        next += summary.answers;
      } else {
        all.insert(all.end(), static_cast<std::size_t>(summary.answers), std::numeric_limits<float>::quiet_NaN());
      }
    }
    write_file_atomically(real_vfs(), arguments.npy, encode_npy(all, {std::ssize(told), summary.answers}));
    std::cerr << "wrote " << arguments.npy << '\n';
  }
  if (summary.failed == 0) return kDone;
  std::cerr << summary.failed << " of " << summary.failed + summary.told << " have no answer\n";
  return kFailed;
}

}  // namespace

void add_predict(Verb program) {
  const Verb verb = program.add("predict", "Tell what a saved network says of files without labels");
  auto arguments = std::make_shared<PredictArguments>();
  PredictOptions& options = arguments->options;
  verb.argument("network", options.network,
                "run folder, runs/<name>/<n>, or a file of tessera export --layout tessera or tessera compress")
      .required();
  verb.argument("inputs", options.inputs,
                "images, folders of images, arrays (.npy); of a network that predicts text, texts, - for standard input");
  verb.argument("--text", options.text, "a text, answered behind the files");
  verb.argument("--top", options.top, "answers to tell, the likeliest first").between(1, 1000000);
  verb.argument("--batch", options.batch, "samples that go through the network together").between(1, 65536);
  verb.argument("--npy", arguments->npy, "file to write all scores to, before the softmax: float32 [lines, answers]");
  verb.argument(
      "--at", options.at,
      "stage name (its last checkpoint), global step, or best (by the validation metric); default: the newest checkpoint");
  verb.argument("--device", options.device, "auto, cpu, cuda or cuda:N; default: the run's, auto for a file");
  verb.argument("--precision", options.precision, "f32, tf32, bf16 or f16, as the device has it; default: the run's");
  verb.argument("--threads", arguments->threads, "compute threads, 0 for all processors; -1 for those of the run, of a file all")
      .between(-1, kMostComputeThreads);
  verb.flag("--json", arguments->json, "a JSON value on each line, for another program to read; docs/json.md lists the keys");
  verb.footer(
      "An input that cannot be read has a line, too, and the exit code is then 1.\n"
      "Examples: tessera predict runs/pets/1 cat.jpg photos/new\n"
      "          tessera predict pets/model.safetensors photos/new --json --npy scores.npy\n"
      "          tessera predict runs/gpt/1 --text \"To be or not to\" --top 3");
  verb.runs([arguments] { return predict_inputs(*arguments); });
}

}  // namespace tessera::cli
