// Passes every operation to the file system below: what decorators derive from.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/io/vfs.h"

namespace tessera {

class ForwardingVfs : public Vfs {
 public:
  explicit ForwardingVfs(Vfs& below) : below_(below) {}

  std::string read_file(const Path& path) override { return below_.read_file(path); }
  std::unique_ptr<WritableFile> create(const Path& path) override { return below_.create(path); }
  std::vector<DirectoryEntry> list(const Path& path) override { return below_.list(path); }
  bool exists(const Path& path) override { return below_.exists(path); }
  std::uint64_t file_size(const Path& path) override { return below_.file_size(path); }
  std::uint64_t free_space(const Path& path) override { return below_.free_space(path); }
  void rename(const Path& from, const Path& to) override { below_.rename(from, to); }
  void replace(const Path& from, const Path& to) override { below_.replace(from, to); }
  void remove(const Path& path) override { below_.remove(path); }
  void make_directory(const Path& path) override { below_.make_directory(path); }
  void sync_directory(const Path& path) override { below_.sync_directory(path); }

 protected:
  Vfs& below_;
};

class ForwardingFile : public WritableFile {
 public:
  explicit ForwardingFile(std::unique_ptr<WritableFile> below) : below_(std::move(below)) {}
  void write(std::string_view bytes) override { below_->write(bytes); }
  void sync() override { below_->sync(); }
  void close() override { below_->close(); }

 protected:
  std::unique_ptr<WritableFile> below_;
};

}  // namespace tessera
