#include "train/report/export.h"

#include <iostream>
#include <memory>

#include "cli/verbs.h"
#include "train/torch/huggingface_config.h"

namespace tessera::cli {
namespace {

struct ExportArguments {
  std::string run;
  std::string layout = "torch";
  std::string output;
};

int export_run(const ExportArguments& arguments) {
  const NetworkToExport network = network_to_export(real_vfs(), arguments.run);
  const std::string& folder = arguments.output;
  if (arguments.layout == "torch") {
    export_torch(real_vfs(), *network.model, network.input, network.origin, folder, network.data);
    const bool classifies = !network.data.as_map().empty();
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
  const Verb verb = program.add("export", "Write a network, a run's newest or a compressed one, for another program");
  auto arguments = std::make_shared<ExportArguments>();
  verb.argument("run", arguments->run, "run folder, runs/<name>/<n>, or a file of tessera compress").required();
  verb.argument(
          "--layout", arguments->layout,
          "torch: PyTorch's names and axes, read by examples/python/load_tessera.py; huggingface: those of GPT-2, Llama, BERT "
          "and ViT, read by transformers")
      .one_of({"torch", "huggingface"});
  verb.argument("--output", arguments->output, "folder to write model.safetensors and model.json, or config.json, to").required();
  verb.footer(
      "Example: tessera export runs/quickstart/1 --layout torch --output quickstart-torch\n"
      "The checkpoint's own model.safetensors has our layout and can be read as it is.");
  verb.runs([arguments] { return export_run(*arguments); });
}

}  // namespace tessera::cli
