#include "core/io/atomic_file.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <system_error>

#include "core/support/error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// What the names of all temporary files of `path` begin with.
std::string temporary_prefix(const fs::path& path) { return str(".", path.filename().string(), ".tmp-"); }

}  // namespace

void write_atomically(Vfs& vfs, const fs::path& path, const std::function<void(WritableFile&)>& write) {
  static std::atomic<unsigned> counter{0};
  const fs::path parent = folder_of(path);
  const fs::path temporary = parent / str(temporary_prefix(path), ::getpid(), "-", counter++);
  try {
    const std::unique_ptr<WritableFile> file = vfs.create(temporary);
    write(*file);
    file->sync();
    file->close();
    vfs.replace(temporary, path);
  } catch (...) {
    try {
      vfs.remove(temporary);
    } catch (const IoError&) {  // the first failure is the one to report
    }
    throw;
  }
  vfs.sync_directory(parent);
}

void remove_unfinished(const fs::path& path) {
  const auto latest = fs::file_time_type::clock::now() - std::chrono::days(1);
  const std::string prefix = temporary_prefix(path);
  for (const DirectoryEntry& entry : real_vfs().list(folder_of(path))) {
    if (!entry.name.starts_with(prefix)) continue;
    const fs::path leftover = folder_of(path) / entry.name;
    std::error_code ignored;  // another process may have been faster
    const auto written = fs::last_write_time(leftover, ignored);
    if (!ignored && written < latest) fs::remove(leftover, ignored);
  }
}

}  // namespace tessera
