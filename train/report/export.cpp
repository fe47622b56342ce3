#include "train/report/export.h"

#include "core/io/safetensors.h"
#include "core/support/error.h"
#include "layers/model_tree.h"
#include "train/checkpoint/store.h"
#include "train/run/model_state.h"
#include "train/run/run_settings.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"
#include "train/torch/torch_layout.h"

namespace tessera {
namespace {

constexpr std::int64_t kExportFormatVersion = 1;

// [c, h, w] of an image, [features] of a row.
Value torch_input(const Shape& input) {
  Value sizes = Value::list();
  if (input.rank() == 4) sizes.as_list().emplace_back(input[3]);
  for (int axis = 1; axis < (input.rank() == 4 ? 3 : input.rank()); ++axis) sizes.as_list().emplace_back(input[axis]);
  return sizes;
}

Value structure(const Module& model, const Shape& input, const Value& origin) {
  Value root = Value::map();
  root.set("format_version", kExportFormatVersion);
  root.set("weights", kExportWeights);
  root.set("input", torch_input(input));
  root.set("origin", origin);
  root.set("network", describe(model));
  return root;
}

SafetensorsFile torch_state(Module& model, const Shape& input) {
  const State state = model_state(model);
  SafetensorsFile file;
  file.metadata["tessera.layout"] = std::string("OIHW");
  for (const TorchTensor& entry : torch_tensors(model, input))
    file.tensors[entry.name] = to_torch(state.tensors.at(entry.path).to(Device::cpu()), entry);
  add_checksum(file);
  return file;
}

}  // namespace

void export_torch(Vfs& vfs, Module& model, const Shape& input, const Value& origin, const std::filesystem::path& folder) {
  for (const char* name : {kExportWeights, kExportModel}) {
    TESSERA_CHECK(!vfs.exists(folder / name), ConfigError, "export: ", (folder / name).string(),
                  " is there already; give another folder");
  }
  const std::string weights = encode_safetensors(torch_state(model, input));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  TESSERA_CHECK(!error, IoError, "export: cannot create ", folder.string(), ": ", error.message());
  write_file_atomically(vfs, folder / kExportWeights, weights);
  write_file_atomically(vfs, folder / kExportModel, to_json(structure(model, input, origin), 2) + "\n");
}

void export_torch(Vfs& vfs, const RunFolder& run, const std::filesystem::path& folder) {
  const Checkpoint checkpoint = load_newest(vfs, run);
  const std::unique_ptr<Module> model = saved_model(checkpoint);
  Value origin = Value::map();
  origin.set("run", run.path());
  origin.set("stage", checkpoint.manifest.at("stage_name").as_string());
  origin.set("step", checkpoint.step);
  export_torch(vfs, *model, input_of(run, checkpoint.manifest), origin, folder);
}

}  // namespace tessera
