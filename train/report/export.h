// A trained network for another program, in a folder of its own.
// torch: model.safetensors (PyTorch's names, convolutions OIHW, metadata tessera.layout OIHW, a checksum) and model.json (the
// module tree, and what the data set says of its samples and of the answers), from which examples/python/load_tessera.py rebuilds
// it. A network of torchvision's structure also loads into torchvision's own class. huggingface: model.safetensors (the names of
// GPT-2, Llama, BERT or ViT in transformers, a checksum) and config.json, which transformers' from_pretrained reads. tessera:
// model.safetensors alone (train/run/network_file.h), which `tessera predict` answers with.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/config/value.h"
#include "core/io/vfs.h"
#include "core/nn/module.h"
#include "train/run/network_file.h"

namespace tessera {

inline constexpr const char* kExportWeights = "model.safetensors";
inline constexpr const char* kExportModel = "model.json";

struct NetworkToExport {
  std::unique_ptr<Module> model;
  Shape input;  // [n, h, w, c], [n, features] or [n, t]
  Value origin;  // a map: where it is from
  std::optional<NetworkUse> use;  // of a run, or of a file that tells it
};
// The network of the newest good checkpoint of a run folder, with the weights that the run evaluates there (evaluation_model()
// in train/run/saved_model.h), or of a file that holds a network (train/run/network_file.h).
NetworkToExport network_to_export(Vfs& vfs, const std::string& path);

// All create the folder. They throw ConfigError when one of their files is there already, and where a layer has no form there;
// then nothing is written. Sparse layers are written as the dense ones that they stand for.
void export_torch(Vfs& vfs, Module& model, const Shape& input, const Value& origin, const std::filesystem::path& folder,
                  const Value& data = Value::map());
void export_tessera(Vfs& vfs, Module& model, const Shape& input, const std::optional<NetworkUse>& use,
                    const std::filesystem::path& folder);
// gpt, bert and vit without factored layers (train/torch/huggingface.h). Masks are not written; the zeros are. Returns the name
// of the class in transformers.
std::string export_huggingface(Vfs& vfs, Module& model, const Shape& input, const std::filesystem::path& folder);

}  // namespace tessera
