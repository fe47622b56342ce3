// compress: factorises a trained network without a run.
#include <iostream>
#include <memory>
#include <utility>

#include "cli/output_file.h"
#include "cli/verbs.h"
#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/compress_report.h"

namespace tessera::cli {
namespace {

struct CompressArguments {
  CompressOptions options;
  bool json = false;
};

// [1, 32, 32, 3] -> "3x32x32", [1, 784] -> "784": the form of bench's --input.
std::string input_text(const Shape& input) {
  return input.rank() == 4 ? str(input[3], 'x', input[1], 'x', input[2]) : str(input[1]);
}

int compress(const CompressArguments& arguments) {
  check_output("--out", arguments.options.output);
  check_output("--record", arguments.options.record);
  const auto tell = [told = std::string()](const std::string& what) mutable {
    if (std::exchange(told, what) != what) std::cerr << "timing " << what << std::endl;  // called for each rank of a layer
  };
  const CompressReport report = compress_network(real_vfs(), arguments.options, tell);
  if (arguments.json) {
    std::cout << to_json(write(report), 2) << '\n';
    return kDone;
  }
  std::cout << to_text(report) << "wrote " << report.output << ": "
            << formatted("%.1f", static_cast<double>(report.bytes) / 1024.0) << " KiB\nnext: tessera bench saved --input "
            << input_text(report.input) << " weights=" << shell_word(report.output) << '\n';
  return kDone;
}

}  // namespace

void add_compress(Verb program) {
  const Verb verb = program.add("compress", "Factorise a trained network without a run, and write it");
  auto arguments = std::make_shared<CompressArguments>();
  CompressOptions& options = arguments->options;
  verb.argument("weights", options.weights, "a .safetensors file, tessera's or PyTorch's, or a run folder").required();
  verb.argument("overrides", options.overrides, "key=value of the file, as for train");
  verb.argument("--config", options.config,
                "experiment file, whose first stage that compresses is taken, or a file of version, model and factorise")
      .required();
  verb.argument("--input", options.input,
                "channels, height and width of an image, e.g. 3x32x32; default: the file's, or the usual one of the model");
  verb.argument("--out", options.output, "file to write; it must not be there yet");
  verb.argument("--decisions", options.decisions, "decisions.json of a run: take its choices, measure only others");
  verb.argument("--record", options.record, "decisions.json to write: the choices that were taken");
  verb.flag("--json", arguments->json, "for another program to read; docs/json.md lists the keys");
  verb.footer(
      "Examples: tessera compress resnet18.safetensors --config resnet18.yaml --out small.safetensors\n"
      "          tessera compress runs/dense/1 --config small.yaml factorise.ranks.macs=0.3 factorise.keep_for.batch=1\n"
      "The file holds the network's structure too: model: {name: saved, weights: small.safetensors} in an experiment file.");
  verb.runs([arguments] { return compress(*arguments); });
}

}  // namespace tessera::cli
