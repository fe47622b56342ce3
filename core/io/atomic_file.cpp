#include "core/io/atomic_file.h"

#include <unistd.h>

#include <chrono>
#include <random>
#include <system_error>

#include "core/support/error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// The common prefix of the names of all temporary files of `path`.
std::string temporary_prefix(const fs::path& path) { return str(".", path.filename().string(), ".tmp-"); }

}  // namespace

fs::path written_file(const fs::path& path) {
  constexpr int kMostLinks = 40;  // the limit of Linux
  fs::path file = path;
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(file, error)); ++links) {
    TESSERA_CHECK(links < kMostLinks, IoError, path.string(), ": is a symbolic link that leads to no end");
    const fs::path target = fs::read_symlink(file, error);
    TESSERA_CHECK(!error, IoError, path.string(), ": cannot read the symbolic link ", file.string(), ": ", error.message());
    file = folder_of(file) / target;
  }
  return file;
}

void write_atomically(Vfs& vfs, const fs::path& path, const std::function<void(WritableFile&)>& write) {
  const fs::path file_path = written_file(path);
  const fs::path parent = folder_of(file_path);
  // Processes on several machines, or in containers, may have the same process id. Random bits tell their files apart.
  std::random_device random;
  const fs::path temporary = parent / str(temporary_prefix(file_path), ::getpid(), "-", random(), random());
  std::unique_ptr<WritableFile> file = vfs.create(temporary);  // if this throws, the file is another process's and stays
  try {
    write(*file);
    file->sync();
    file->close();
    vfs.replace(temporary, file_path);
  } catch (...) {
    file.reset();
    try {
      vfs.remove(temporary);
    } catch (const IoError&) {  // the first failure is the one to report
    }
    throw;
  }
  vfs.sync_directory(parent);
}

namespace {

void remove_old(const fs::path& folder, const std::function<bool(const std::string& name)>& is_temporary) {
  const auto latest = fs::file_time_type::clock::now() - std::chrono::days(1);
  for (const DirectoryEntry& entry : real_vfs().list(folder)) {
    if (!is_temporary(entry.name)) continue;
    const fs::path leftover = folder / entry.name;
    std::error_code ignored;  // another process may have removed it first
    const auto written = fs::last_write_time(leftover, ignored);
    if (!ignored && written < latest) fs::remove(leftover, ignored);
  }
}

}  // namespace

void remove_unfinished(const fs::path& path) {
  const fs::path file = written_file(path);
  remove_old(folder_of(file), [&](const std::string& name) { return name.starts_with(temporary_prefix(file)); });
}

void remove_all_unfinished(const fs::path& folder, std::string_view extension) {
  const std::string middle = str(extension, ".tmp-");
  remove_old(folder, [&](const std::string& name) { return name.starts_with('.') && name.find(middle) != std::string::npos; });
}

}  // namespace tessera
