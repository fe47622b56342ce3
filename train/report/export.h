// A trained network for PyTorch: <folder>/model.safetensors (PyTorch's names, convolutions OIHW, metadata
// tessera.layout OIHW, a checksum)
// and <folder>/model.json (the module tree), from which examples/python/load_tessera.py rebuilds it. A network of torchvision's
// structure also loads into torchvision's own class.
#pragma once

#include <filesystem>

#include "core/config/value.h"
#include "core/io/vfs.h"
#include "core/nn/module.h"
#include "train/run/run_folder.h"

namespace tessera {

inline constexpr const char* kExportWeights = "model.safetensors";
inline constexpr const char* kExportModel = "model.json";

// `input` is [n, h, w, c] or [n, features]; `origin`, a map, is recorded in model.json. Creates the folder. Throws ConfigError
// when one of the files is there already or a layer has no PyTorch form (train/torch/torch_layout.h); then nothing is written.
void export_torch(Vfs& vfs, Module& model, const Shape& input, const Value& origin, const std::filesystem::path& folder);

// The network of a file that holds one (train/run/network_file.h).
void export_torch(Vfs& vfs, const std::string& file, const std::filesystem::path& folder);

// The network of the run's newest good checkpoint.
void export_torch(Vfs& vfs, const RunFolder& run, const std::filesystem::path& folder);

}  // namespace tessera
