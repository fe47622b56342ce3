#include "train/run/weights_source.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "core/io/safetensors.h"
#include "core/support/error.h"
#include "train/checkpoint/folder_name.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/store.h"
#include "train/run/run_folder.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"
#include "train/torch/huggingface_config.h"

namespace tessera {
namespace {

bool is_pickle(const std::filesystem::path& path, std::string_view bytes) {
  const std::string extension = path.extension().string();
  return extension == ".pth" || extension == ".pt" || bytes.starts_with("PK\x03\x04");
}

[[noreturn]] void refuse_pickle(const std::filesystem::path& path) {
  const std::string to = std::filesystem::path(path).replace_extension(".safetensors").filename().string();
  throw ConfigError(str(path.string(), ": a PyTorch file, which may run code when it is loaded; convert it once in Python:\n",
                        "  import torch, safetensors.torch\n", "  safetensors.torch.save_file(torch.load('",
                        path.filename().string(), "', map_location='cpu'), '", to, "')"));
}

WeightsSource read_run(Vfs& vfs, const std::string& path) {
  const RunFolder folder = RunFolder::open(vfs, path);
  const Checkpoint checkpoint = load_newest(vfs, folder);
  return {checkpoint.folder.string(), saved_weights(checkpoint).tensors, false, checkpoint.manifest.at("model")};
}

// Reads a file. If it is in a checkpoint folder, it must match what the manifest records of it.
std::string read_checked(Vfs& vfs, const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  if (!parse_checkpoint_folder_name(folder.filename().string())) return vfs.read_file(path);
  for (const FileRecord& record : read_manifest(vfs, folder).files) {
    if (record.name == path.filename()) return read_verified(vfs, folder, record);
  }
  return vfs.read_file(path);
}

}  // namespace

WeightsSource read_weights_file(Vfs& vfs, const std::string& path) {
  if (is_pickle(path, "")) refuse_pickle(path);
  const std::string bytes = read_checked(vfs, path);
  if (is_pickle(path, bytes)) refuse_pickle(path);
  SafetensorsFile file = decode_safetensors(bytes, path);
  const auto found = file.metadata.find(kLayoutKey);
  const std::string layout = found == file.metadata.end() ? "OIHW" : found->second;
  TESSERA_CHECK(layout == "OHWI" || layout == "OIHW", ConfigError, path, ": metadata ", kLayoutKey, " is '", layout,
                "'; must be OHWI (tessera) or OIHW (PyTorch)");
  WeightsSource source{
      path, std::move(file.tensors), layout == "OIHW", tree_of(file, path), input_of(file, path), use_of(file, path)};
  if (source.torch) source.huggingface = huggingface_names(source.tensors);
  const std::filesystem::path config = std::filesystem::path(path).parent_path() / kHuggingFaceConfig;
  if (source.huggingface && vfs.exists(config)) {
    source.huggingface_config = parse_json(vfs.read_file(config), config.string());
    TESSERA_CHECK(source.huggingface_config->is_map(), IoError, config.string(), ": is ", source.huggingface_config->kind_name(),
                  "; must be a block of settings");
  }
  return source;
}

WeightsSource read_weights(Vfs& vfs, const std::string& path) {
  TESSERA_CHECK(vfs.exists(path), ConfigError, "weights: no file or run folder ", path);
  return std::filesystem::is_directory(path) ? read_run(vfs, path) : read_weights_file(vfs, path);
}

}  // namespace tessera
