#include "train/checkpoint/part_files.h"

#include <memory>
#include <utility>

#include "core/io/safetensors.h"
#include "core/support/error.h"
#include "core/support/hash.h"

namespace tessera {
namespace {

using Path = std::filesystem::path;
using Parts = std::map<std::string, State>;

constexpr std::string_view kStateName = "state.json";
constexpr std::string_view kTensorSuffix = ".safetensors";

void check_part_name(const std::string& name) {
  constexpr std::string_view kLegal = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  TESSERA_CHECK(!name.empty() && name.front() != '.' && name.find_first_not_of(kLegal) == std::string::npos, InternalError,
                "checkpoint: part name '", name, "': letters, digits, '_', '-' and '.' only, and no '.' in front");
}

// Writes and syncs one new file. Its hash is computed from the bytes as they are written.
class HashedFile {
 public:
  HashedFile(Vfs& vfs, const Path& folder, std::string name)
      : record_{std::move(name), 0, {}}, file_(vfs.create(folder / record_.name)) {}
  void write(std::string_view bytes) {
    file_->write(bytes);
    hash_.update(bytes);
    record_.bytes += static_cast<std::int64_t>(bytes.size());
  }
  FileRecord finish() {
    file_->sync();
    file_->close();
    record_.hash = hash_.hex();
    return std::move(record_);
  }

 private:
  FileRecord record_;
  std::unique_ptr<WritableFile> file_;
  Xxh3Stream hash_;
};

// Adds one file's content to the parts; returns the number of tensors it held.
std::int64_t add_file(Parts& parts, const FileRecord& record, std::string_view bytes, const Path& path) {
  if (record.name == kStateName) {
    const Value metas = parse_json(bytes, path.string());
    TESSERA_CHECK(metas.is_map(), IoError, "checkpoint: ", path.string(), ": holds ", metas.kind_name(), ", needs a block");
    for (const Value::Entry& entry : metas.as_map()) parts[entry.key].meta = entry.value;
    return 0;
  }
  if (!record.name.ends_with(kTensorSuffix)) return 0;
  const std::string part = record.name.substr(0, record.name.size() - kTensorSuffix.size());
  SafetensorsFile file = decode_safetensors(bytes, path.string());
  const auto count = static_cast<std::int64_t>(file.tensors.size());
  parts[part].tensors = std::move(file.tensors);
  return count;
}

}  // namespace

FileRecord write_hashed(Vfs& vfs, const Path& folder, std::string_view name, std::string_view bytes) {
  HashedFile file(vfs, folder, std::string(name));
  file.write(bytes);
  return file.finish();
}

Manifest write_parts(Vfs& vfs, const Path& folder, const Parts& parts) {
  Manifest manifest;
  Value metas = Value::map();
  for (const auto& [name, state] : parts) {
    check_part_name(name);
    metas.set(name, state.meta);
    if (state.tensors.empty()) continue;
    HashedFile file(vfs, folder, name + std::string(kTensorSuffix));
    encode_safetensors({.tensors = state.tensors, .metadata = {{"tessera.layout", "OHWI"}}},
                       [&](std::string_view bytes) { file.write(bytes); });
    manifest.files.push_back(file.finish());
    manifest.tensors += static_cast<std::int64_t>(state.tensors.size());
  }
  manifest.files.push_back(write_hashed(vfs, folder, kStateName, to_json(metas, 2) + "\n"));
  return manifest;
}

std::map<std::string, State> read_parts(Vfs& vfs, const Path& folder, const Manifest& manifest) {
  Parts parts;
  std::int64_t tensors = 0;
  for (const FileRecord& record : manifest.files) {
    tensors += add_file(parts, record, read_verified(vfs, folder, record), folder / record.name);
  }
  TESSERA_CHECK(tensors == manifest.tensors, IoError, "checkpoint: ", folder.string(), ": files hold ", tensors,
                " tensors, manifest says ", manifest.tensors);
  return parts;
}

}  // namespace tessera
