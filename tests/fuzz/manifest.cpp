#include "train/checkpoint/manifest.h"

#include "core/support/error.h"
#include "core/support/hash.h"
#include "tests/fuzz/targets.h"

namespace tessera::fuzz {
namespace {

// Appends the hash that the format requires: without it no changed byte would get past the check.
std::string sealed(std::string_view body) { return str(body, ",\n  \"xxh3_128\": \"", xxh3_128(body), "\"\n}\n"); }

bool same(const Manifest& a, const Manifest& b) {
  if (a.step != b.step || a.tensors != b.tensors || a.pinned != b.pinned || a.files.size() != b.files.size()) return false;
  for (std::size_t i = 0; i < a.files.size(); ++i) {
    const FileRecord& left = a.files[i];
    const FileRecord& right = b.files[i];
    if (left.name != right.name || left.bytes != right.bytes || left.hash != right.hash) return false;
  }
  return a.extra == b.extra;
}

void check(std::string_view bytes) {
  Manifest found;
  try {
    found = decode_manifest(bytes, "fuzz/MANIFEST.json");
  } catch (const IoError&) {
    return;
  } catch (const CheckpointVersionError&) {
    return;
  }
  for (const FileRecord& file : found.files) {
    require(!file.name.empty() && file.name.find('/') == std::string::npos && file.name != "..", "a file outside the folder");
  }
  require(same(decode_manifest(encode_manifest(found), "again"), found), "a manifest changed when written and read");
}

Manifest sample() {
  Manifest made;
  made.step = 1200;
  made.tensors = 62;
  made.files = {{"model.safetensors", 1000, xxh3_128("model")}, {"optimizer.safetensors", 8, xxh3_128("optimizer")}};
  made.pinned = {600, 900};
  made.extra.set("data", "99aa06d3014798d86001c324468d497f");
  made.extra.set("classes", Value::list({"a", "b"}));
  made.extra.set("position", parse_json(R"({"stage": 1, "epoch": 2.5, "done": false})", "seed"));
  return made;
}

}  // namespace

void manifest(std::string_view bytes) {
  check(bytes);
  check(sealed(bytes));
}

std::vector<std::string> manifest_seeds() {
  const std::string whole = encode_manifest(sample());
  const std::string small = encode_manifest({});
  const auto body = [](const std::string& text) { return text.substr(0, text.rfind(",\n  \"xxh3_128\"")); };
  return {whole, small, body(whole), body(small)};
}

}  // namespace tessera::fuzz
