#include "core/io/atomic_file.h"

#include <unistd.h>

#include <atomic>

#include "core/support/error.h"

namespace tessera {

void write_atomically(Vfs& vfs, const std::filesystem::path& path, const std::function<void(WritableFile&)>& write) {
  static std::atomic<unsigned> counter{0};
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const std::filesystem::path temporary = parent / str(".", path.filename().string(), ".tmp-", ::getpid(), "-", counter++);
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

}  // namespace tessera
