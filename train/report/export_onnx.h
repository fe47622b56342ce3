// A trained network as a file of ONNX, for runtimes that read it.
#pragma once

#include <filesystem>
#include <optional>

#include "core/io/vfs.h"
#include "core/nn/module.h"
#include "train/onnx/network.h"
#include "train/run/network_file.h"

namespace tessera {

// One file, atomically, in a folder that is made where there is none. Beside the graph (train/onnx/network.h) its metadata has
// tessera.version, and of a run's network tessera.task, tessera.precision and, in JSON and as tessera.<key>, what the data set
// says of its samples and of the answers (keys_of_export() in train/data/splits.h). Throws ConfigError on a file that is there
// already and where a layer has no form there, NumericError where a weight is NaN or Inf; then nothing is written.
void export_onnx(Vfs& vfs, Module& model, const Shape& input, const std::optional<NetworkUse>& use,
                 const std::filesystem::path& file, const OnnxOptions& options = {});

}  // namespace tessera
