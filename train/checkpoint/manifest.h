// MANIFEST.json: what a checkpoint folder holds and what each byte of it hashes to. Written last: a folder without a manifest
// that matches it is not a checkpoint. Its own last key, "xxh3_128", is the hash of everything before that key.
//
//   { "format_version": 2, "step": 1200, "tensors": 62, "files": [{"name": ..., "bytes": ..., "xxh3_128": ...}, ...],
//     "pinned": [...], <what the run adds>, "xxh3_128": "..." }
//
// Compatibility: keys may be added without raising format_version, and readers ignore keys that they do not know. format_version
// rises when a reader of another version would misread the rest; a reader refuses every version but its own in one sentence.
// 2: what the passes of a stage did is a list.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/fields.h"
#include "core/io/vfs.h"
#include "core/support/error.h"

namespace tessera {

inline constexpr std::int64_t kCheckpointFormatVersion = 2;

// A checkpoint of another format version. It is not an IoError, because readers take an IoError for damage and pass over the
// checkpoint.
class CheckpointVersionError final : public Error {
 public:
  using Error::Error;
};

inline constexpr std::string_view kManifestName = "MANIFEST.json";

struct FileRecord {
  std::string name;
  std::int64_t bytes = 0;
  std::string hash;

  void fields(Fields& f);
};

struct Manifest {
  std::int64_t step = 0;
  std::int64_t tensors = 0;
  std::vector<FileRecord> files;
  std::set<std::int64_t> pinned;
  Value extra = Value::map();  // every other key

  void fields(Fields& f);  // the format's own keys, but for the hash of the manifest itself
};

std::string encode_manifest(const Manifest& manifest);
// Throws IoError naming the file and the check that failed.
Manifest decode_manifest(std::string_view bytes, std::string_view origin);
Manifest read_manifest(Vfs& vfs, const std::filesystem::path& folder);

// The file's bytes, after checking their number and hash against the record.
std::string read_verified(Vfs& vfs, const std::filesystem::path& folder, const FileRecord& record);

}  // namespace tessera
