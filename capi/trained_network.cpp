#include "capi/trained_network.h"

#include <filesystem>
#include <string_view>

#include "core/device/precision.h"
#include "core/support/error.h"
#include "layers/self_attention.h"
#include "train/checkpoint/part_files.h"
#include "train/data/labelled_images.h"
#include "train/data/splits.h"
#include "train/run/decisions_file.h"
#include "train/run/import_weights.h"
#include "train/run/run_settings.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"
#include "train/tasks/builtin.h"

namespace tessera::capi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVerb = "tessera_load";

std::vector<double> numbers(const Value& list) {
  std::vector<double> values;
  for (const Value& value : list.as_list()) values.push_back(value.as_double());
  return values;
}

bool has_kind(Module& model, std::string_view kind) {
  bool found = false;
  for_each_module(model, [&](const Module& module) { found = found || module.kind() == kind; });
  return found;
}

Shape without_batch(const Shape& shape) { return shape.erase(0); }

// `shape` is that of a batch of one.
Input first_input(const Module& model, const Shape& shape, const Value& data) {
  const std::int64_t limit = model.input_limit();
  Input input;
  const std::string name = limit > 0 ? "tokens" : shape.rank() == 4 ? "image" : "features";
  input.field = {name, limit > 0 ? DType::i64 : DType::f32, without_batch(shape), limit};
  input.any_length = limit > 0;
  if (const Value* const preprocessing = data.find(kPreprocessingKey)) {
    input.pixels = {numbers(preprocessing->at("mean")), numbers(preprocessing->at("std"))};
  }
  return input;
}

// Those of tokens that layers ask for by name.
void add_optional_inputs(TrainedNetwork& network) {
  if (!network.inputs.front().any_length) return;
  const Shape tokens = network.inputs.front().field.shape;
  const auto add = [&](std::string_view kind, const Field& field) {
    if (!has_kind(*network.model, kind)) return;
    network.inputs.push_back({.field = field, .optional = true, .any_length = true});
  };
  add("self_attention", {"key_mask", DType::u8, tokens});
  add("segments", {"segments", DType::i64, tokens});
}

TrainedNetwork finished(TrainedNetwork network, const Shape& input) {
  network.inputs.push_back(first_input(*network.model, input, network.data));
  add_optional_inputs(network);
  network.compute();  // refuses a precision now, not in the first run
  return network;
}

TrainedNetwork from_file(Vfs& vfs, const std::string& path, const LoadOptions& options) {
  FileNetwork file = file_network(vfs, path);
  TrainedNetwork network{.model = std::move(file.model)};
  network.origin.set("file", path);
  if (!options.precision.empty()) network.precision = options.precision;
  return finished(std::move(network), file.input);
}

// `run` is null for a checkpoint that lies in no run.
TrainedNetwork from_checkpoint(const Checkpoint& checkpoint, const RunFolder* run, const LoadOptions& options) {
  TrainedNetwork network{.model = evaluation_model(checkpoint)};
  if (run != nullptr) {
    const ExperimentConfig config = settings_of(*run, {}, {}, kVerb);
    network.task = std::string(task_of(config.data).name());
    network.precision = config.precision;
    network.origin.set("run", run->path());
  } else {
    network.origin.set("checkpoint", checkpoint.folder.string());
  }
  network.origin.set("stage", checkpoint.manifest.at("stage_name"));
  network.origin.set("step", checkpoint.step);
  if (!options.precision.empty()) network.precision = options.precision;
  network.decisions = recorded_decisions(checkpoint.manifest);
  network.data = keys_of_export(checkpoint.manifest);
  network.passed_over = checkpoint.damaged;
  return finished(std::move(network), input_of(checkpoint.manifest));
}

Checkpoint read_checkpoint(Vfs& vfs, const fs::path& folder) {
  const Manifest manifest = read_manifest(vfs, folder);
  return {manifest.step, folder, read_parts(vfs, folder, manifest), manifest.extra, {}};
}

// The run that a checkpoint's folder lies in.
std::optional<RunFolder> run_of(Vfs& vfs, const fs::path& checkpoint) {
  const fs::path run = checkpoint.parent_path().parent_path();
  if (checkpoint.parent_path().filename() != "checkpoints" || !vfs.exists(run / "config.resolved.yaml")) return std::nullopt;
  return RunFolder::open(vfs, run.string());
}

// Without a slash at the end, so that parents are parents.
fs::path folder_at(const std::string& path) {
  const fs::path folder = fs::absolute(path).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();
}

}  // namespace

DType TrainedNetwork::compute() const { return compute_dtype(precision, Device::cpu()); }

TrainedNetwork load_trained(Vfs& vfs, const std::string& path, const LoadOptions& options) {
  TESSERA_CHECK(fs::exists(path), ConfigError, kVerb, ": there is no ", path,
                "; needs a run folder, the folder of one of its checkpoints, or a file of tessera compress");
  const fs::path folder = folder_at(path);
  const bool whole_run = fs::is_directory(path) && !vfs.exists(folder / kManifestName);
  TESSERA_CHECK(whole_run || options.at.empty(), ConfigError, kVerb, ": at is '", options.at, "', but ", path,
                " is no run folder, in which it would name a checkpoint");
  if (fs::is_regular_file(path)) return from_file(vfs, path, options);
  if (whole_run) {
    const RunFolder run = RunFolder::open(vfs, path);
    return from_checkpoint(load_at(vfs, run, options.at, kVerb), &run, options);
  }
  const std::optional<RunFolder> run = run_of(vfs, folder);
  return from_checkpoint(read_checkpoint(vfs, folder), run ? &*run : nullptr, options);
}

}  // namespace tessera::capi
