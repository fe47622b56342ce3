#include "train/report/export.h"

#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/verbs.h"

namespace tessera::cli {
namespace {

struct ExportArguments {
  std::string run;
  std::string layout = "torch";
  std::string output;
};

int export_run(const ExportArguments& arguments) {
  if (std::filesystem::is_regular_file(arguments.run)) {
    export_torch(real_vfs(), arguments.run, arguments.output);
  } else {
    export_torch(real_vfs(), RunFolder::open(real_vfs(), arguments.run), arguments.output);
  }
  std::cout << "wrote " << arguments.output << '/' << kExportWeights << " and " << arguments.output << '/' << kExportModel
            << "\nnext: python3 examples/python/load_tessera.py " << arguments.output << '\n';
  return kDone;
}

}  // namespace

void add_export(Verb program) {
  const Verb verb = program.add("export", "Write a network, a run's newest or a compressed one, for another program");
  auto arguments = std::make_shared<ExportArguments>();
  verb.argument("run", arguments->run, "run folder, runs/<name>/<n>, or a file of tessera compress").required();
  verb.argument("--layout", arguments->layout, "torch: PyTorch's names and axes, read by examples/python/load_tessera.py")
      .one_of({"torch"});
  verb.argument("--output", arguments->output, "folder to write model.safetensors and model.json to").required();
  verb.footer(
      "Example: tessera export runs/quickstart/1 --layout torch --output quickstart-torch\n"
      "The checkpoint's own model.safetensors has our layout and can be read as it is.");
  verb.runs([arguments] { return export_run(*arguments); });
}

}  // namespace tessera::cli
