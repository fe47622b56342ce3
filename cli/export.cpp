#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/export.h"
#include "train/report/tensorboard/tensorboard.h"
#include "train/torch/huggingface_config.h"

namespace tessera::cli {
namespace {

struct ExportArguments {
  std::vector<std::string> runs;
  std::string layout = "torch";
  std::string output;
};

int export_numbers(const ExportArguments& arguments) {
  export_tensorboard(real_vfs(), arguments.runs, arguments.output);
  std::cout << "wrote " << arguments.runs.size() << (arguments.runs.size() == 1 ? " run" : " runs") << " to " << arguments.output
            << "\nnext: tensorboard --logdir " << shell_word(arguments.output) << '\n';
  return kDone;
}

int export_network(const ExportArguments& arguments) {
  TESSERA_CHECK(arguments.runs.size() == 1, ConfigError, "export: --layout ", arguments.layout, " takes one run; given ",
                arguments.runs.size());
  const bool ours = arguments.layout == "tessera";
  const NetworkToExport network = network_to_export(real_vfs(), arguments.runs.front(), /*as_evaluated=*/ours);
  const std::string& folder = arguments.output;
  if (ours) {
    export_tessera(real_vfs(), *network.model, network.input, network.use, folder);
    std::cout << "wrote " << folder << '/' << kExportWeights << "\nnext: tessera predict " << folder << '/' << kExportWeights
              << " INPUT...\n";
  } else if (arguments.layout == "torch") {
    const Value data = network.use ? network.use->data : Value::map();
    export_torch(real_vfs(), *network.model, network.input, network.origin, folder, data);
    const bool classifies = data.find("preprocessing") != nullptr;
    std::cout << "wrote " << folder << '/' << kExportWeights << " and " << folder << '/' << kExportModel
              << "\nnext: python3 examples/python/" << (classifies ? "classify.py " : "load_tessera.py ") << folder
              << (classifies ? " IMAGE...\n" : "\n");
  } else {
    const std::string name = export_huggingface(real_vfs(), *network.model, network.input, folder);
    std::cout << "wrote " << folder << '/' << kExportWeights << " and " << folder << '/' << kHuggingFaceConfig
              << "\nnext, in Python: transformers." << name << ".from_pretrained(\"" << folder << "\")\n";
  }
  return kDone;
}

}  // namespace

void add_export(Verb program) {
  const Verb verb =
      program.add("export", "Write a network, a run's newest or a compressed one, or what runs logged, for another program");
  auto arguments = std::make_shared<ExportArguments>();
  verb.argument("runs", arguments->runs,
                "a run folder, runs/<name>/<n>, or a file of tessera compress; for tensorboard one run folder or "
                "more")
      .required();
  verb.argument(
          "--layout", arguments->layout,
          "torch: PyTorch's names and axes, read by examples/python/load_tessera.py; huggingface: those of GPT-2, Llama, BERT "
          "and ViT, read by transformers; tessera: ours, read by tessera predict; tensorboard: event files of what runs logged")
      .one_of({"torch", "huggingface", "tessera", "tensorboard"});
  verb.argument("-o,--output", arguments->output,
                "folder to write model.safetensors to, and model.json or config.json; for tensorboard a folder for each run, "
                "which is written anew")
      .required();
  verb.footer(
      "Examples: tessera export runs/quickstart/1 --layout torch --output quickstart-torch\n"
      "          tessera export runs/quickstart/1 --layout tessera --output quickstart\n"
      "          tessera export runs/quickstart/1 runs/quickstart/2 --layout tensorboard -o quickstart-events");
  verb.runs([arguments] { return arguments->layout == "tensorboard" ? export_numbers(*arguments) : export_network(*arguments); });
}

}  // namespace tessera::cli
