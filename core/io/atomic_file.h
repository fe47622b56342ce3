// Files that are there in whole or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "core/io/vfs.h"

namespace tessera {

// The file that a write to `path` makes or replaces: where the path is a symbolic link, the one at the end of its links, which
// need not be there yet. Throws IoError naming the path where they lead to no end.
std::filesystem::path written_file(const std::filesystem::path& path);

// Creates or replaces a file, which `write` writes in parts, so that a reader sees the old bytes or the new ones, also after a
// power cut: temporary file .<name>.tmp-<process>-<random> beside it, fsync, rename, fsync of the directory. The temporary file
// is removed when a step fails, `write` among them. A symbolic link stays one: written_file() of it is written.
void write_atomically(Vfs& vfs, const std::filesystem::path& path, const std::function<void(WritableFile&)>& write);

// Removes the temporary files of `path` that killed processes left: those which nobody has written to for a day. A younger one
// may be another machine's, whose processes cannot be seen. Throws IoError where the folder cannot be read.
void remove_unfinished(const std::filesystem::path& path);
// The same of all files in a folder whose names end in `extension`, such as ".tokens".
void remove_all_unfinished(const std::filesystem::path& folder, std::string_view extension);

}  // namespace tessera
