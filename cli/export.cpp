#include "train/report/export.h"

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
  export_torch(real_vfs(), RunFolder::open(real_vfs(), arguments.run), arguments.output);
  std::cout << "wrote " << arguments.output << '/' << kExportWeights << " and " << arguments.output << '/' << kExportModel
            << "\nnext: python3 examples/python/load_tessera.py " << arguments.output << '\n';
  return kDone;
}

}  // namespace

void add_export(CLI::App& app, Run& run) {
  auto* verb = app.add_subcommand("export", "Write a run's newest network for another program");
  auto arguments = std::make_shared<ExportArguments>();
  verb->add_option("run", arguments->run, "run folder, runs/<name>/<n>")->required();
  verb->add_option("--layout", arguments->layout, "torch: PyTorch's names and axes, read by examples/python/load_tessera.py")
      ->check(CLI::IsMember({"torch"}))
      ->capture_default_str();
  verb->add_option("--output", arguments->output, "folder to write model.safetensors and model.json to")->required();
  verb->footer(
      "Example: tessera export runs/quickstart/1 --layout torch --output quickstart-torch\n"
      "The checkpoint's own model.safetensors has our layout and can be read as it is.");
  verb->callback([arguments, &run] { run = [arguments] { return export_run(*arguments); }; });
}

}  // namespace tessera::cli
