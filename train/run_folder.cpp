#include "train/run_folder.h"

#include <filesystem>
#include <fstream>

#include "core/error.h"

namespace tessera {

RunFolder RunFolder::create(Vfs& vfs, const std::string& runs, const std::string& name) {
  const std::string parent = runs + "/" + name;
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  TESSERA_CHECK(!error, IoError, "cannot create ", parent, ": ", error.message());
  for (int number = 1;; ++number) {
    const std::string path = str(parent, '/', number);
    if (vfs.exists(path)) continue;
    // create_directory answers false when another process took the number between the two calls.
    if (!std::filesystem::create_directory(path, error)) {
      TESSERA_CHECK(!error, IoError, "cannot create ", path, ": ", error.message());
      continue;
    }
    vfs.make_directory(path + "/checkpoints");
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
