// The files of one checkpoint folder: a part's tensors in <part>.safetensors, what else it saved in state.json.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "core/io/vfs.h"
#include "core/nn/state.h"
#include "train/checkpoint/manifest.h"

namespace tessera {

// One new file, synced, with its hash taken from the bytes as they pass. Throws IoError.
FileRecord write_hashed(Vfs& vfs, const std::filesystem::path& folder, std::string_view name, std::string_view bytes);

// Writes the parts; the manifest returned has `files` and `tensors` only. Throws IoError, and InternalError on a part name of
// other characters than letters, digits, '_', '-' and '.'.
Manifest write_parts(Vfs& vfs, const std::filesystem::path& folder, const std::map<std::string, State>& parts);

// The parts that a manifest lists. Throws IoError naming the file when a byte of one is not as it was written.
std::map<std::string, State> read_parts(Vfs& vfs, const std::filesystem::path& folder, const Manifest& manifest);

}  // namespace tessera
