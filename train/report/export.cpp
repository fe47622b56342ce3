#include "train/report/export.h"

#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/config/read.h"
#include "core/io/safetensors.h"
#include "core/support/error.h"
#include "layers/compressed.h"
#include "layers/model_tree.h"
#include "train/checkpoint/store.h"
#include "train/run/import_weights.h"
#include "train/run/model_state.h"
#include "train/run/run_folder.h"
#include "train/run/run_settings.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"
#include "train/run/saved_use.h"
#include "train/torch/huggingface.h"
#include "train/torch/huggingface_config.h"
#include "train/torch/torch_layout.h"

namespace tessera {
namespace {

constexpr std::int64_t kExportFormatVersion = 1;

// [c, h, w] of an image, [features] of a row.
std::vector<std::int64_t> torch_input(const Shape& input) {
  std::vector<std::int64_t> sizes;
  if (input.rank() == 4) sizes.push_back(input[3]);
  for (int axis = 1; axis < (input.rank() == 4 ? 3 : input.rank()); ++axis) sizes.push_back(input[axis]);
  return sizes;
}

struct ModelFile {
  std::vector<std::int64_t> input;
  Value origin;
  Value network;

  void fields(Fields& f) {
    f.add_computed("format_version", kExportFormatVersion, {.help = "readers refuse every other"});
    f.add_computed("weights", std::string(kExportWeights), {.help = "the file beside this one that holds them"});
    f.add("input", input, {.help = "[c, h, w] of an image, [features] of a row"});
    f.add("origin", origin, {.help = "where the network is from"});
    f.add("network", network, {.help = "the module tree"});
  }
};

struct RunOrigin {
  std::string run;
  std::string stage;
  std::int64_t step = 0;

  void fields(Fields& f) {
    f.add("run", run, {.help = "its folder"});
    f.add("stage", stage, {.help = "under way or at its end"});
    f.add("step", step, {.help = "steps of the run"});
  }
};

struct FileOrigin {
  std::string file;

  void fields(Fields& f) { f.add("file", file, {.help = "its path"}); }
};

// A copy on the CPU. Compressed layers that PyTorch does not know become dense.
std::unique_ptr<Module> for_torch(Module& model) {
  std::unique_ptr<Module> copy = copy_of(model);
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> dense;
  for_each_module(*copy, [&](const Module& module) {
    const CompressedLayer* const compressed = as_compressed(module);
    if (compressed != nullptr && compressed->torch_tensors().empty()) dense.emplace_back(module.path(), compressed->to_dense());
  });
  for (auto& [path, layer] : dense) replace_module(copy, path, std::move(layer));
  move_to(*copy, Device::cpu());
  return copy;
}

// The mask of "fc.weight" is "fc.weight_mask", u8, 1 = kept.
SafetensorsFile torch_state(Module& model, const Shape& input) {
  const State state = model_state(model);
  std::map<std::string, Tensor> masks;
  for (const NamedParameter& entry : named_parameters(model)) {
    if (entry.parameter->mask().defined()) masks[entry.path] = entry.parameter->mask();
  }
  SafetensorsFile file;
  file.metadata["tessera.layout"] = std::string("OIHW");
  for (const TorchTensor& entry : torch_tensors(model, input)) {
    file.tensors[entry.name] = to_torch(state.tensors.at(entry.path), entry);
    const auto mask = masks.find(entry.path);
    if (mask != masks.end()) file.tensors[entry.name + "_mask"] = to_torch(mask->second, entry);
  }
  add_checksum(file);
  return file;
}

std::map<std::string, Shape> shapes_of(const State& state) {
  std::map<std::string, Shape> shapes;
  for (const auto& [path, tensor] : state.tensors) {
    if (!path.ends_with(".mask")) shapes[path] = tensor.shape();
  }
  return shapes;
}

SafetensorsFile huggingface_state(Module& model, std::string_view type) {
  const State state = model_state(model);
  SafetensorsFile file;
  for (const TorchTensor& entry : huggingface_layout({.type = type}, shapes_of(state)).tensors) {
    file.tensors[entry.name] = to_torch(state.tensors.at(entry.path), entry);
  }
  add_checksum(file);
  return file;
}

struct NewFile {
  const char* name;
  std::string bytes;
};

void refuse_existing(Vfs& vfs, const std::filesystem::path& folder, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    TESSERA_CHECK(!vfs.exists(folder / name), ConfigError, "export: ", (folder / name).string(),
                  " is there already; give another folder");
  }
}

void write_files(Vfs& vfs, const std::filesystem::path& folder, std::initializer_list<NewFile> files) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  TESSERA_CHECK(!error, IoError, "export: cannot create ", folder.string(), ": ", error.message());
  for (const NewFile& file : files) write_file_atomically(vfs, folder / file.name, file.bytes);
}

}  // namespace

NetworkToExport network_to_export(Vfs& vfs, const std::string& path) {
  if (std::filesystem::is_regular_file(path)) {
    FileNetwork network = file_network(vfs, path);
    return {std::move(network.model), network.input, write(FileOrigin{path}), std::move(network.use)};
  }
  const RunFolder run = RunFolder::open(vfs, path);
  const Checkpoint checkpoint = load_newest(vfs, run);
  const RunOrigin origin{run.path(), checkpoint.manifest.at("stage_name").as_string(), checkpoint.step};
  return {evaluation_model(checkpoint), input_of(checkpoint.manifest), write(origin),
          use_of_run(settings_of(run, {}, {}, "export"), checkpoint.manifest)};
}

void export_tessera(Vfs& vfs, Module& model, const Shape& input, const std::optional<NetworkUse>& use,
                    const std::filesystem::path& folder) {
  refuse_existing(vfs, folder, {kExportWeights});
  write_files(vfs, folder, {{kExportWeights, encode_network(model, input, use)}});
}

void export_torch(Vfs& vfs, Module& model, const Shape& input, const Value& origin, const std::filesystem::path& folder,
                  const Value& data) {
  refuse_existing(vfs, folder, {kExportWeights, kExportModel});
  const std::unique_ptr<Module> network = for_torch(model);
  Value description = write(ModelFile{torch_input(input), origin, describe(*network)});
  for (const Value::Entry& entry : data.as_map()) description.set(entry.key, entry.value);
  write_files(
      vfs, folder,
      {{kExportWeights, encode_safetensors(torch_state(*network, input))}, {kExportModel, to_json(description, 2) + "\n"}});
}

std::string export_huggingface(Vfs& vfs, Module& model, const Shape& input, const std::filesystem::path& folder) {
  refuse_existing(vfs, folder, {kExportWeights, kHuggingFaceConfig});
  const std::unique_ptr<Module> network = for_torch(model);
  const std::string_view type = huggingface_type(*network);
  const SafetensorsFile file = huggingface_state(*network, type);
  const Value config = huggingface_config(type, *network, input);
  write_files(vfs, folder, {{kExportWeights, encode_safetensors(file)}, {kHuggingFaceConfig, to_json(config, 2) + "\n"}});
  return config.at("architectures").as_list().front().as_string();
}

}  // namespace tessera
