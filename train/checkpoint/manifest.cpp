#include "train/checkpoint/manifest.h"

#include <array>

#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/hash.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 6> kOwnKeys{"format_version", "step", "tensors", "files", "pinned", "xxh3_128"};
constexpr std::string_view kSealStart = ",\n  \"xxh3_128\": \"";
constexpr std::string_view kSealEnd = "\"\n}\n";
constexpr std::size_t kHashDigits = 32;

bool is_own_key(std::string_view key) {
  for (const std::string_view own : kOwnKeys) {
    if (key == own) return true;
  }
  return false;
}

void check_seal(std::string_view bytes, std::string_view origin) {
  const std::size_t seal = kSealStart.size() + kHashDigits + kSealEnd.size();
  const bool sealed =
      bytes.size() > seal && bytes.substr(bytes.size() - seal, kSealStart.size()) == kSealStart && bytes.ends_with(kSealEnd);
  TESSERA_CHECK(sealed, IoError, "checkpoint: ", origin, ": does not end in its own hash: truncated or altered");
  const std::string_view body = bytes.substr(0, bytes.size() - seal);
  const std::string_view hash = bytes.substr(body.size() + kSealStart.size(), kHashDigits);
  const std::string found = xxh3_128(body);
  TESSERA_CHECK(found == hash, IoError, "checkpoint: ", origin, ": hash is ", found, ", its last line says ", hash);
}

FileRecord decode_record(const Value& value, std::string_view origin) {
  FileRecord record{value.at("name").as_string(), value.at("bytes").as_int(), value.at("xxh3_128").as_string()};
  const bool plain = !record.name.empty() && record.name.front() != '.' && record.name.find('/') == std::string::npos;
  TESSERA_CHECK(plain, IoError, "checkpoint: ", origin, ": lists file '", record.name, "'; only plain names are legal");
  return record;
}

Manifest decode_fields(const Value& value, std::string_view origin) {
  const std::int64_t version = value.at("format_version").as_int();
  TESSERA_CHECK(version == kCheckpointFormatVersion, CheckpointVersionError, "checkpoint: ", origin, ": format_version is ",
                version, ", this tessera reads ", kCheckpointFormatVersion,
                "; use the tessera that wrote it (its commit is in the run's env.json)");
  Manifest manifest;
  manifest.step = value.at("step").as_int();
  manifest.tensors = value.at("tensors").as_int();
  for (const Value& record : value.at("files").as_list()) manifest.files.push_back(decode_record(record, origin));
  for (const Value& step : value.at("pinned").as_list()) manifest.pinned.insert(step.as_int());
  for (const Value::Entry& entry : value.as_map()) {
    if (!is_own_key(entry.key)) manifest.extra.set(entry.key, entry.value);
  }
  return manifest;
}

}  // namespace

void FileRecord::fields(Fields& f) {
  f.add("name", name, {.help = "in the checkpoint's folder"});
  f.add("bytes", bytes, {.help = "its length"});
  f.add("xxh3_128", hash, {.help = "of its bytes"});
}

void Manifest::fields(Fields& f) {
  f.add_computed("format_version", kCheckpointFormatVersion, {.help = "readers refuse every other"});
  f.add("step", step, {.help = "steps of the run"});
  f.add("tensors", tensors, {.help = "in all files"});
  f.add("files", files, {.help = "what the folder holds beside this file"});
  f.add_computed("pinned", std::vector(pinned.begin(), pinned.end()), {.help = "steps of checkpoints that always stay"});
}

std::string encode_manifest(const Manifest& manifest) {
  Value value = write(manifest);
  for (const Value::Entry& entry : manifest.extra.as_map()) {
    TESSERA_CHECK(!is_own_key(entry.key), InternalError, "checkpoint: manifest key '", entry.key, "' belongs to the format");
    value.set(entry.key, entry.value);
  }
  std::string json = to_json(value, 2);
  json.resize(json.find_last_not_of(" \n", json.rfind('}') - 1) + 1);
  const std::string hash = xxh3_128(json);
  return json.append(kSealStart).append(hash).append(kSealEnd);
}

Manifest decode_manifest(std::string_view bytes, std::string_view origin) {
  check_seal(bytes, origin);
  try {
    return decode_fields(parse_json(bytes, origin), origin);
  } catch (const ConfigError& error) {
    throw IoError(str("checkpoint: ", origin, ": ", error.what()));
  }
}

Manifest read_manifest(Vfs& vfs, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kManifestName;
  return decode_manifest(vfs.read_file(path), path.string());
}

std::string read_verified(Vfs& vfs, const std::filesystem::path& folder, const FileRecord& record) {
  const std::filesystem::path path = folder / record.name;
  std::string bytes = vfs.read_file(path);
  TESSERA_CHECK(static_cast<std::int64_t>(bytes.size()) == record.bytes, IoError, "checkpoint: ", path.string(), ": file has ",
                bytes.size(), " bytes, manifest says ", record.bytes);
  const std::string hash = xxh3_128(bytes);
  TESSERA_CHECK(hash == record.hash, IoError, "checkpoint: ", path.string(), ": hash is ", hash, ", manifest says ", record.hash);
  return bytes;
}

}  // namespace tessera
