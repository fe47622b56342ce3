#include "tests/core/io/crash_vfs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "core/rng.h"
#include "core/support/error.h"
#include "core/support/hash.h"

namespace tessera {
namespace {

using Path = Vfs::Path;

constexpr std::size_t kSector = 512;

[[noreturn]] void fail(const char* operation, const Path& path, int error) {
  throw IoError(str("vfs: ", operation, " failed: path is ", path.string(), ": ", std::strerror(error)));
}

}  // namespace

// One pending change of a directory: a node gets this name instead of its old one, or no name if `name` is empty.
struct CrashVfs::Change {
  std::string name;
  NodePtr node;
};

struct CrashVfs::Node {
  bool is_directory = false;
  std::string bytes;
  std::string durable_bytes;
  std::map<std::string, NodePtr> names;
  std::map<std::string, NodePtr> durable_names;
  std::vector<Change> pending;

  void change(Change change) {
    apply(names, change);
    pending.push_back(std::move(change));
  }
  static void apply(std::map<std::string, NodePtr>& names, const Change& change) {
    // A node has one name in a directory, even if an earlier rename of it did not survive.
    std::erase_if(names, [&](const auto& item) { return item.second == change.node; });
    if (!change.name.empty()) names[change.name] = change.node;
  }
};

// Draws what survives, in the order of the walk.
class CrashVfs::Picker {
 public:
  Picker(Survival survival, std::uint64_t seed) : survival_(survival), stream_(seed, "crash", "image") {}

  NodePtr copy(const Node& node) {
    auto kept = std::make_shared<Node>();
    kept->is_directory = node.is_directory;
    kept->bytes = kept->durable_bytes = surviving_bytes(node);
    for (const auto& [name, child] : surviving_names(node)) kept->names[name] = copy(*child);
    kept->durable_names = kept->names;
    return kept;
  }

 private:
  std::size_t below(std::size_t bound) {
    return static_cast<std::size_t>(random_below(stream_, 0, draws_++, static_cast<std::int64_t>(bound)));
  }

  std::string surviving_bytes(const Node& node) {
    if (survival_ == Survival::everything || node.bytes == node.durable_bytes) return node.bytes;
    if (survival_ == Survival::nothing || survival_ == Survival::names) return node.durable_bytes;
    const std::size_t sectors = node.bytes.size() / kSector + 1;
    if (survival_ == Survival::torn) return node.bytes.substr(0, kSector * below(sectors));
    std::string bytes = node.bytes;  // the length reached the disk, but some sectors did not
    for (std::size_t at = 0; at < bytes.size(); at += kSector) {
      if (below(2) == 0) std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), std::min(kSector, bytes.size() - at), '\0');
    }
    return bytes;
  }

  std::map<std::string, NodePtr> surviving_names(const Node& node) {
    if (survival_ == Survival::nothing) return node.durable_names;
    if (survival_ != Survival::reordered) return node.names;
    std::map<std::string, NodePtr> names = node.durable_names;
    for (const Change& change : node.pending) {
      if (below(2) == 0) Node::apply(names, change);
    }
    return names;
  }

  Survival survival_;
  RngStream stream_;
  std::uint64_t draws_ = 0;
};

class CrashVfs::File final : public WritableFile {
 public:
  File(CrashVfs& vfs, Path path, NodePtr node) : vfs_(vfs), path_(std::move(path)), node_(std::move(node)) {}
  void write(std::string_view bytes) override {
    vfs_.announce("write", path_);
    node_->bytes += bytes;
  }
  void sync() override {
    vfs_.announce("sync", path_);
    node_->durable_bytes = node_->bytes;
  }
  void close() override { vfs_.announce("close", path_); }

 private:
  CrashVfs& vfs_;
  Path path_;
  NodePtr node_;
};

CrashVfs::CrashVfs() : root_(std::make_shared<Node>()) { root_->is_directory = true; }
CrashVfs::CrashVfs(CrashVfs&&) noexcept = default;
CrashVfs& CrashVfs::operator=(CrashVfs&&) noexcept = default;
CrashVfs::~CrashVfs() = default;

CrashVfs CrashVfs::image(Survival survival, std::uint64_t seed) const {
  CrashVfs vfs;
  vfs.root_ = Picker(survival, seed).copy(*root_);
  return vfs;
}

std::string CrashVfs::fingerprint() const {
  Xxh3Stream hash;
  const std::function<void(const Node&)> add = [&](const Node& node) {
    hash.update(str(node.is_directory ? "d" : "f", node.bytes.size(), " ", node.names.size(), " ", node.bytes));
    for (const auto& [name, child] : node.names) {
      hash.update(str(name.size(), " ", name));
      add(*child);
    }
  };
  add(*root_);
  return hash.hex();
}

void CrashVfs::overwrite(const Path& path, std::string_view bytes) {
  const NodePtr node = require("open", path, false);
  node->bytes = node->durable_bytes = bytes;
}

CrashVfs::NodePtr CrashVfs::find(const Path& path) const {
  NodePtr node = root_;
  for (const Path& part : path.relative_path()) {
    const auto child = node->names.find(part.string());
    if (child == node->names.end()) return nullptr;
    node = child->second;
  }
  return node;
}

CrashVfs::NodePtr CrashVfs::require(const char* operation, const Path& path, bool directory) const {
  NodePtr node = find(path);
  if (!node) fail(operation, path, ENOENT);
  if (node->is_directory != directory) fail(operation, path, directory ? ENOTDIR : EISDIR);
  return node;
}

CrashVfs::NodePtr CrashVfs::parent_of(const char* operation, const Path& path) const {
  return require(operation, path.parent_path(), true);
}

void CrashVfs::announce(const char* operation, const Path& path) {
  if (before_change) before_change(str(operation, " ", path.filename().string()));
  ++changes_;
}

std::string CrashVfs::read_file(const Path& path) { return require("open", path, false)->bytes; }

std::unique_ptr<WritableFile> CrashVfs::create(const Path& path) {
  announce("create", path);
  if (find(path)) fail("create", path, EEXIST);
  auto node = std::make_shared<Node>();
  parent_of("create", path)->change({path.filename().string(), node});
  return std::make_unique<File>(*this, path, std::move(node));
}

std::vector<DirectoryEntry> CrashVfs::list(const Path& directory) {
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, node] : require("list", directory, true)->names) entries.push_back({name, node->is_directory});
  return entries;
}

bool CrashVfs::exists(const Path& path) { return find(path) != nullptr; }
std::uint64_t CrashVfs::file_size(const Path& path) { return require("stat", path, false)->bytes.size(); }
std::uint64_t CrashVfs::free_space(const Path&) { return std::uint64_t{1} << 40; }

void CrashVfs::rename(const Path& from, const Path& to) {
  announce("rename", to);
  if (find(to)) fail("rename", to, EEXIST);
  move(from, to);
}

void CrashVfs::replace(const Path& from, const Path& to) {
  announce("replace", to);
  move(from, to);
}

void CrashVfs::move(const Path& from, const Path& to) {
  const NodePtr node = find(from);
  if (!node) fail("rename", from, ENOENT);
  TESSERA_CHECK(from.parent_path() == to.parent_path(), InternalError, "crash_vfs: rename from ", from, " to another folder, ",
                to);
  parent_of("rename", to)->change({to.filename().string(), node});
}

void CrashVfs::remove(const Path& path) {
  announce("remove", path);
  const NodePtr node = find(path);
  if (!node) fail("remove", path, ENOENT);
  if (!node->names.empty()) fail("remove", path, ENOTEMPTY);
  parent_of("remove", path)->change({"", node});
}

void CrashVfs::make_directory(const Path& path) {
  announce("mkdir", path);
  if (find(path)) fail("mkdir", path, EEXIST);
  auto node = std::make_shared<Node>();
  node->is_directory = true;
  parent_of("mkdir", path)->change({path.filename().string(), std::move(node)});
}

void CrashVfs::sync_directory(const Path& path) {
  announce("syncdir", path);
  const NodePtr node = require("fsync", path, true);
  node->durable_names = node->names;
  node->pending.clear();
}

void each_crash(const CrashVfs& disk, std::uint64_t seed,
                const std::function<void(const std::string& name, CrashVfs& left)>& look) {
  struct Image {
    const char* name;
    Survival survival;
    std::uint64_t seed = 0;
  };
  constexpr std::array<Image, 8> kImages{{{"nothing", Survival::nothing},
                                          {"everything", Survival::everything},
                                          {"names", Survival::names},
                                          {"torn", Survival::torn},
                                          {"reordered 1", Survival::reordered, 1},
                                          {"reordered 2", Survival::reordered, 2},
                                          {"reordered 3", Survival::reordered, 3},
                                          {"reordered 4", Survival::reordered, 4}}};
  std::set<std::string> seen;
  for (const Image& image : kImages) {
    CrashVfs left = disk.image(image.survival, image.seed + 16 * seed);
    if (seen.insert(left.fingerprint()).second) look(image.name, left);
  }
}

}  // namespace tessera
