#include "train/report/export.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/compute_threads.h"
#include "train/report/bench_network.h"
#include "train/report/export_onnx.h"
#include "train/report/inference_choices.h"
#include "train/report/tensorboard/tensorboard.h"
#include "train/run/environment.h"
#include "train/torch/huggingface_config.h"

namespace tessera::cli {
namespace {

struct ExportArguments {
  std::vector<std::string> runs;
  std::string layout = "torch";
  std::string output;
  std::string batch;
  std::int64_t threads = 0;
  bool keep_batch_norm = false;
};

constexpr std::int64_t kMostSamples = 1'000'000;

void export_for_torch(const NetworkToExport& network, const std::string& folder) {
  const Value data = network.use ? network.use->data : Value::map();
  export_torch(real_vfs(), *network.model, network.input, network.origin, folder, data);
  const bool classifies = data.find("preprocessing") != nullptr;
  std::cout << "wrote " << folder << '/' << kExportWeights << " and " << folder << '/' << kExportModel
            << "\nnext, in the folder of tessera's sources: python3 examples/python/"
            << (classifies ? "classify.py " : "load_tessera.py ") << std::filesystem::absolute(folder).lexically_normal().string()
            << (classifies ? " IMAGE...\n" : "\n");
}

void export_for_transformers(const NetworkToExport& network, const std::string& folder) {
  const std::string name = export_huggingface(real_vfs(), *network.model, network.input, folder);
  std::cout << "wrote " << folder << '/' << kExportWeights << " and " << folder << '/' << kHuggingFaceConfig
            << "\nnext, in Python: transformers." << name << ".from_pretrained(\"" << folder << "\")\n";
}

void export_for_onnx(const NetworkToExport& network, const ExportArguments& arguments) {
  const std::string& file = arguments.output;
  export_onnx(real_vfs(), *network.model, network.input, network.use, file, {.keep_batch_norm = arguments.keep_batch_norm});
  std::cout << "wrote " << file << "\nnext, in Python: onnxruntime.InferenceSession(\"" << file << "\")\n";
}

// Times the choices of inference at the batch sizes of --batch and stores them in the file.
void add_choices(NetworkToExport& network, const ExportArguments& arguments) {
  if (arguments.batch.empty()) return;
  const std::vector<std::int64_t> batches = parse_counts("--batch", arguments.batch, kMostSamples);
  TESSERA_CHECK(
      network.use, ConfigError, "--batch: ", arguments.runs.front(),
      " does not tell what its network learnt, and keeps no choices of a clock; give a run, or a file that was made of one");
  set_compute_threads(resolve_compute_threads(arguments.threads));
  std::cerr << "timing inference with batches of " << arguments.batch << std::endl;
  add_inference_choices(*network.use, *network.model, network.input, batches);
}

void export_for_tessera(NetworkToExport network, const ExportArguments& arguments) {
  add_choices(network, arguments);
  const std::string& folder = arguments.output;
  export_tessera(real_vfs(), *network.model, network.input, network.use, folder);
  std::cout << "wrote " << folder << '/' << kExportWeights << "\nnext: tessera predict " << folder << '/' << kExportWeights
            << " INPUT...\n";
}

int export_network(const ExportArguments& arguments) {
  TESSERA_CHECK(arguments.runs.size() == 1, ConfigError, "export: --layout ", arguments.layout, " takes one run; given ",
                arguments.runs.size());
  NetworkToExport network = network_to_export(real_vfs(), arguments.runs.front());
  if (arguments.layout == "tessera") {
    export_for_tessera(std::move(network), arguments);
  } else if (arguments.layout == "torch") {
    export_for_torch(network, arguments.output);
  } else if (arguments.layout == "onnx") {
    export_for_onnx(network, arguments);
  } else {
    export_for_transformers(network, arguments.output);
  }
  return kDone;
}

int export_numbers(const ExportArguments& arguments) {
  export_tensorboard(real_vfs(), arguments.runs, arguments.output);
  std::cout << "wrote " << arguments.runs.size() << (arguments.runs.size() == 1 ? " run" : " runs") << " to " << arguments.output
            << "\nnext: tensorboard --logdir " << shell_word(arguments.output) << '\n';
  return kDone;
}

int export_runs(const ExportArguments& arguments) {
  TESSERA_CHECK(arguments.layout == "tessera" || (arguments.batch.empty() && arguments.threads == 0), ConfigError,
                "--batch and --threads are of --layout tessera: a clock chooses among tessera's kernels");
  TESSERA_CHECK(arguments.layout == "onnx" || !arguments.keep_batch_norm, ConfigError, "--keep-batch-norm: the layout ",
                arguments.layout, " folds no batch norms; it is of onnx");
  return arguments.layout == "tensorboard" ? export_numbers(arguments) : export_network(arguments);
}

}  // namespace

void add_export(Verb program) {
  const Verb verb =
      program.add("export", "Write a network, a run's newest or a compressed one, or what runs logged, for another program");
  auto arguments = std::make_shared<ExportArguments>();
  verb.argument("runs", arguments->runs,
                "a run folder, runs/<name>/<n>, or a file of tessera compress or tessera export --layout tessera; for "
                "tensorboard one run folder or more")
      .required();
  verb.argument(
          "--layout", arguments->layout,
          "torch: PyTorch's names and axes, read by examples/python/load_tessera.py; huggingface: those of GPT-2, Llama, BERT "
          "and ViT, read by transformers; tessera: ours, read by tessera predict; onnx: a file of ONNX's operators (opset 13), "
          "read by ONNX Runtime and others; tensorboard: event files of what runs logged")
      .one_of({"torch", "huggingface", "tessera", "onnx", "tensorboard"});
  verb.argument("-o,--output", arguments->output,
                "folder to write model.safetensors to, and model.json or config.json; of onnx the file; for tensorboard a folder "
                "for each run, which is written anew")
      .required();
  verb.argument(
      "--batch", arguments->batch,
      "of --layout tessera: a clock chooses now what is fastest in inference with so many samples at once, e.g. 1,32; the "
      "file keeps the choices");
  verb.argument("--threads", arguments->threads, "compute threads of --batch; 0: every processor")
      .between(0, kMostComputeThreads);
  verb.flag("--keep-batch-norm", arguments->keep_batch_norm,
            "of onnx: batch norms stay layers of their own, rather than being folded into the convolutions before them");
  verb.footer(
      "Examples: tessera export runs/quickstart/1 --layout torch --output quickstart-torch\n"
      "          tessera export runs/quickstart/1 --layout tessera --batch 1,32 --output quickstart\n"
      "          tessera export runs/quickstart/1 --layout onnx --output quickstart.onnx\n"
      "          tessera export runs/quickstart/1 runs/quickstart/2 --layout tensorboard -o quickstart-events");
  verb.runs([arguments] { return export_runs(*arguments); });
}

}  // namespace tessera::cli
