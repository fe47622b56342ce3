#include "train/run/run_folder.h"

#include <filesystem>
#include <fstream>

#include "core/support/error.h"

namespace tessera {
namespace {

using Path = std::filesystem::path;

// Returns false if the folder exists already: another process may have made it between two calls.
bool make_folder(Vfs& vfs, const Path& path) try {
  vfs.make_directory(path);
  return true;
} catch (const IoError& error) {
  if (vfs.exists(path)) return false;
  throw IoError(str("cannot create ", path.string(), ": ", error.what()));
}

// Makes the folder and its parents, and syncs every name: a checkpoint is only as safe as the folders that lead to it.
void make_folders(Vfs& vfs, const Path& path) {
  if (vfs.exists(path)) return;
  const Path parent = path.has_parent_path() ? path.parent_path() : Path(".");
  make_folders(vfs, parent);
  make_folder(vfs, path);
  vfs.sync_directory(parent);
}

}  // namespace

RunFolder RunFolder::create(Vfs& vfs, const std::string& runs, const std::string& name) {
  const std::string parent = runs + "/" + name;
  make_folders(vfs, parent);
  for (int number = 1;; ++number) {
    const std::string path = str(parent, '/', number);
    if (vfs.exists(path) || !make_folder(vfs, path)) continue;
    vfs.make_directory(path + "/checkpoints");
    vfs.sync_directory(path);
    vfs.sync_directory(parent);
    return RunFolder(path);
  }
}

RunFolder RunFolder::open(Vfs& vfs, const std::string& path) {
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  TESSERA_CHECK(vfs.exists(trimmed), ConfigError, "no run folder ", trimmed);
  RunFolder folder(trimmed);
  TESSERA_CHECK(vfs.exists(folder.resolved_config()), ConfigError, trimmed,
                " is not a run folder: config.resolved.yaml is missing; give runs/<name>/<n>");
  return folder;
}

std::string RunFolder::rank_log(int rank) const { return str(path_, "/train.rank", rank, ".log"); }

void append_overrides(const RunFolder& folder, const std::string& what, std::span<const std::string> overrides) {
  std::ofstream log(folder.log(), std::ios::app);
  if (overrides.empty()) log << what << '\n';
  for (const std::string& text : overrides) log << what << " with " << text << '\n';
  TESSERA_CHECK(log.good(), IoError, "cannot write to ", folder.log());
}

}  // namespace tessera
