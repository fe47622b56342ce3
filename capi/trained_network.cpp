#include "capi/trained_network.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/device/precision.h"
#include "core/support/error.h"
#include "train/checkpoint/manifest.h"
#include "train/data/labelled_images.h"
#include "train/data/splits.h"
#include "train/run/import_weights.h"
#include "train/run/named_fault.h"
#include "train/run/run_settings.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"
#include "train/run/saved_use.h"

namespace tessera::capi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVerb = "tessera_load";

std::vector<double> numbers(const Value& list) {
  std::vector<double> values;
  for (const Value& value : list.as_list()) values.push_back(value.as_double());
  return values;
}

// The first module of the kind; null if there is none.
const Module* module_of_kind(Module& model, std::string_view kind) {
  const Module* found = nullptr;
  for_each_module(model, [&](const Module& module) {
    if (found == nullptr && module.kind() == kind) found = &module;
  });
  return found;
}

Shape without_batch(const Shape& shape) { return shape.erase(0); }

// `shape` is the input shape of a batch of one.
Input first_input(const Module& model, const Shape& shape, const Value& data) {
  const std::int64_t limit = model.input_limit();
  Input input;
  const std::string name = limit > 0 ? "tokens" : shape.rank() == 4 ? "image" : "features";
  input.field = {name, limit > 0 ? DType::i64 : DType::f32, without_batch(shape), limit};
  input.any_length = limit > 0;
  if (const Value* const preprocessing = data.find(kPreprocessingKey)) {
    const Normalization normalization{numbers(preprocessing->at("mean")), numbers(preprocessing->at("std"))};
    input.pixels.emplace(normalization, input.field.shape.dim(-1));
  }
  return input;
}

// Adds the inputs that belong to tokens and that layers ask for by name.
void add_optional_inputs(TrainedNetwork& network) {
  if (!network.inputs.front().any_length) return;
  const Shape tokens = network.inputs.front().field.shape;
  const auto add = [&](const Field& field) { network.inputs.push_back({.field = field, .optional = true, .any_length = true}); };
  if (module_of_kind(*network.model, "self_attention") != nullptr) add({"key_mask", DType::u8, tokens});
  if (const Module* const segments = module_of_kind(*network.model, "segments")) {
    add({"segments", DType::i64, tokens, segments->config().at("types").as_int()});
  }
}

// `input` is the shape saved at `path`. A precision that the network cannot use is refused now, not in the first run.
TrainedNetwork finished(TrainedNetwork network, const Shape& input, const std::string& path, const std::string& precision) {
  naming_the_place(path, [&] {
    network.inputs.push_back(first_input(*network.model, input, network.use.data));
    add_optional_inputs(network);
    network.decisions = decisions_of(network.use);
    if (precision.empty()) network.compute();
  });
  if (precision.empty()) return network;
  network.use.precision = precision;
  network.compute();
  return network;
}

TrainedNetwork from_file(Vfs& vfs, const std::string& path, const LoadOptions& options) {
  FileNetwork file = file_network(vfs, path);
  TrainedNetwork network{.model = std::move(file.model)};
  if (file.use) network.use = std::move(*file.use);
  network.origin.set("file", path);
  return finished(std::move(network), file.input, path, options.precision);
}

// `run` is null for a checkpoint outside a run folder.
TrainedNetwork from_checkpoint(const Checkpoint& checkpoint, const RunFolder* run, const std::string& path,
                               const LoadOptions& options) {
  TrainedNetwork network{.model = evaluation_model(checkpoint)};
  if (run != nullptr) {
    network.use = use_of_run(settings_of(*run, {}, {}, kVerb), checkpoint.manifest);
    network.origin.set("run", run->path());
  } else {
    network.use = use_of_checkpoint(checkpoint.manifest);
    network.origin.set("checkpoint", checkpoint.folder.string());
  }
  network.origin.set("stage", checkpoint.manifest.at("stage_name"));
  network.origin.set("step", checkpoint.step);
  network.passed_over = checkpoint.damaged;
  return finished(std::move(network), input_of(checkpoint.manifest), path, options.precision);
}

// The run that the checkpoint's folder belongs to, if any.
std::optional<RunFolder> run_of(Vfs& vfs, const fs::path& checkpoint) {
  const fs::path run = checkpoint.parent_path().parent_path();
  if (checkpoint.parent_path().filename() != "checkpoints" || !vfs.exists(run / "config.resolved.yaml")) return std::nullopt;
  return RunFolder::open(vfs, run.string());
}

// Drops a slash at the end, so that parent_path() is the folder's parent.
fs::path folder_at(const std::string& path) {
  const fs::path folder = fs::absolute(path).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();
}

fs::file_type type_of(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  TESSERA_CHECK(status.type() != fs::file_type::not_found, ConfigError, kVerb, ": there is no ", path,
                "; needs a run folder, the folder of one of its checkpoints, or a file of tessera compress or tessera export "
                "--layout tessera");
  TESSERA_CHECK(!error, IoError, kVerb, ": ", path, ": ", error.message());
  return status.type();
}

}  // namespace

DType TrainedNetwork::compute() const { return compute_dtype(use.precision, Device::cpu()); }

TrainedNetwork load_trained(Vfs& vfs, const std::string& path, const LoadOptions& options) {
  const fs::file_type type = type_of(path);
  const fs::path folder = folder_at(path);
  const bool whole_run = type == fs::file_type::directory && !vfs.exists(folder / kManifestName);
  TESSERA_CHECK(whole_run || options.at.empty(), ConfigError, kVerb, ": at is '", options.at, "', but ", path,
                " is no run folder, in which it would name a checkpoint");
  if (type == fs::file_type::regular) return from_file(vfs, path, options);
  if (whole_run) {
    const RunFolder run = RunFolder::open(vfs, path);
    return from_checkpoint(load_at(vfs, run, options.at, kVerb), &run, path, options);
  }
  const std::optional<RunFolder> run = run_of(vfs, folder);
  return from_checkpoint(load_folder(vfs, folder, read_manifest(vfs, folder)), run ? &*run : nullptr, path, options);
}

}  // namespace tessera::capi
