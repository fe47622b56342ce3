#include "train/run_folder.h"

#include <filesystem>
#include <fstream>
#include <vector>

#include "core/error.h"

namespace tessera {
namespace {

// With the names on the way made durable: a checkpoint is only as safe as the folders that lead to it.
void make_directories(Vfs& vfs, const std::filesystem::path& path) {
  std::vector<std::filesystem::path> parents;  // of what is missing, innermost first
  const auto parent_of = [](const std::filesystem::path& below) {
    return below.has_parent_path() ? below.parent_path() : std::filesystem::path(".");
  };
  for (std::filesystem::path missing = path; !vfs.exists(missing); missing = parents.back()) parents.push_back(parent_of(missing));
  std::error_code error;
  std::filesystem::create_directories(path, error);
  TESSERA_CHECK(!error, IoError, "cannot create ", path.string(), ": ", error.message());
  for (auto parent = parents.rbegin(); parent != parents.rend(); ++parent) vfs.sync_directory(*parent);
}

}  // namespace

RunFolder RunFolder::create(Vfs& vfs, const std::string& runs, const std::string& name) {
  const std::string parent = runs + "/" + name;
  make_directories(vfs, parent);
  for (int number = 1;; ++number) {
    const std::string path = str(parent, '/', number);
    if (vfs.exists(path)) continue;
    std::error_code error;
    // create_directory answers false when another process took the number between the two calls.
    if (!std::filesystem::create_directory(path, error)) {
      TESSERA_CHECK(!error, IoError, "cannot create ", path, ": ", error.message());
      continue;
    }
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

void append_overrides(const RunFolder& folder, const std::string& what, std::span<const std::string> overrides) {
  std::ofstream log(folder.log(), std::ios::app);
  for (const std::string& text : overrides) log << what << " with " << text << '\n';
  TESSERA_CHECK(log.good(), IoError, "cannot write to ", folder.log());
}

}  // namespace tessera
