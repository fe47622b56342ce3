#include "train/report/export.h"

#include <iostream>
#include <memory>

#include "cli/verbs.h"
#include "core/support/error.h"
#include "train/report/export_onnx.h"
#include "train/torch/huggingface_config.h"

namespace tessera::cli {
namespace {

struct ExportArguments {
  std::string run;
  std::string layout = "torch";
  std::string output;
  bool keep_batch_norm = false;
};

int export_run(const ExportArguments& arguments) {
  const bool ours = arguments.layout == "tessera", onnx = arguments.layout == "onnx";
  TESSERA_CHECK(onnx || !arguments.keep_batch_norm, ConfigError, "--keep-batch-norm: the layout ", arguments.layout,
                " folds no batch norms; it is of onnx");
  const NetworkToExport network = network_to_export(real_vfs(), arguments.run, /*as_evaluated=*/ours || onnx);
  const std::string& folder = arguments.output;
  if (ours) {
    export_tessera(real_vfs(), *network.model, network.input, network.use, folder);
    std::cout << "wrote " << folder << '/' << kExportWeights << "\nnext: tessera predict " << folder << '/' << kExportWeights
              << " INPUT...\n";
  } else if (onnx) {
    export_onnx(real_vfs(), *network.model, network.input, network.use, folder, {.keep_batch_norm = arguments.keep_batch_norm});
    std::cout << "wrote " << folder << "\nnext, in Python: onnxruntime.InferenceSession(\"" << folder << "\")\n";
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
  const Verb verb = program.add("export", "Write a network, a run's newest or a compressed one, for another program");
  auto arguments = std::make_shared<ExportArguments>();
  verb.argument("run", arguments->run, "run folder, runs/<name>/<n>, or a file of tessera compress").required();
  verb.argument(
          "--layout", arguments->layout,
          "torch: PyTorch's names and axes, read by examples/python/load_tessera.py; huggingface: those of GPT-2, Llama, BERT "
          "and ViT, read by transformers; tessera: ours, read by tessera predict; onnx: a file of ONNX's operators (opset 13), "
          "read by "
          "ONNX Runtime and others")
      .one_of({"torch", "huggingface", "tessera", "onnx"});
  verb.argument("-o,--output", arguments->output,
                "folder to write model.safetensors to, and model.json or config.json; of onnx the file")
      .required();
  verb.flag("--keep-batch-norm", arguments->keep_batch_norm,
            "of onnx: batch norms stay layers of their own, rather than being folded into the convolutions before them");
  verb.footer(
      "Examples: tessera export runs/quickstart/1 --layout torch --output quickstart-torch\n"
      "          tessera export runs/quickstart/1 --layout tessera --output quickstart\n"
      "          tessera export runs/quickstart/1 --layout onnx --output quickstart.onnx");
  verb.runs([arguments] { return export_run(*arguments); });
}

}  // namespace tessera::cli
