// Damage that no crash causes: flipped bits, and files that are truncated, swapped, lost or added. The damage must always be
// found, the error must name the file, and the older checkpoint must load instead.
#include <gtest/gtest.h>

#include <set>

#include "core/io/safetensors_header.h"
#include "core/rng.h"
#include "core/support/hash.h"
#include "tests/core/io/crash_vfs.h"
#include "tests/core/io/expect_error.h"
#include "tests/train/checkpoint/store_fixture.h"

namespace tessera {
namespace {

using Path = std::filesystem::path;

const Path kFolder = "/run/checkpoints";
const Path kNewest = kFolder / "step-00000002";

// The simulated disk of a run with checkpoints of steps 1 and 2. They hold the contents `content` and content + 1.
CrashVfs make_run(const RunLock& lock, std::int64_t content) {
  CrashVfs disk;
  disk.make_directory("/run");
  CheckpointStore store(disk, kFolder);
  store.open_for_writing(lock);
  for (const std::int64_t step : {1, 2}) store.save(step, parts_at(content + step - 1), extra_at(content + step - 1));
  return disk;
}

std::uint64_t header_end(std::string_view safetensors) {
  std::uint64_t length = 0;
  std::memcpy(&length, safetensors.data(), sizeof length);
  return sizeof length + length;
}

// The offsets at which one item ends and the next begins: the length, the header and each tensor, or each line of JSON.
std::set<std::size_t> boundaries(const std::string& name, const std::string& bytes) {
  std::set<std::size_t> ends{0, bytes.size()};
  if (!name.ends_with(".safetensors")) {
    for (std::size_t at = bytes.find('\n'); at != std::string::npos; at = bytes.find('\n', at + 1)) ends.insert(at + 1);
    return ends;
  }
  const std::uint64_t data = header_end(bytes);
  ends.insert({8, data});
  const std::string_view json = std::string_view(bytes).substr(8, data - 8);
  for (const safetensors::Entry& entry : safetensors::parse_header(json, name).entries) {
    ends.insert(data + static_cast<std::uint64_t>(entry.begin));
    ends.insert(data + static_cast<std::uint64_t>(entry.end));
  }
  return ends;
}

class CheckpointCorruption : public ::testing::Test {
 protected:
  std::vector<std::string> files() {
    std::vector<std::string> names;
    for (const DirectoryEntry& entry : disk.list(kNewest)) names.push_back(entry.name);
    return names;
  }
  std::string bytes_of(const std::string& name) { return disk.read_file(kNewest / name); }

  // The newest checkpoint is damaged in this file, and the error names the file.
  void expect_found(const std::string& name) {
    const CheckpointStore store(disk, kFolder);
    const Checkpoint checkpoint = store.load_latest();
    expect_checkpoint(checkpoint, 1);
    ASSERT_EQ(checkpoint.damaged.size(), 1u);
    EXPECT_NE(checkpoint.damaged[0].find((kNewest / name).string()), std::string::npos) << checkpoint.damaged[0];
    EXPECT_THROW(store.load(2), IoError);
  }
  void expect_found(const std::string& name, const std::string& bad) {
    const std::string good = bytes_of(name);
    disk.overwrite(kNewest / name, bad);
    expect_found(name);
    disk.overwrite(kNewest / name, good);
  }

  // Replaces a file of the newest checkpoint and writes a manifest that matches the new bytes.
  void forge(const std::string& name, const std::string& bytes) {
    Manifest manifest = read_manifest(disk, kNewest);
    for (FileRecord& record : manifest.files) {
      if (record.name == name) record = {name, static_cast<std::int64_t>(bytes.size()), xxh3_128(bytes)};
    }
    disk.overwrite(kNewest / name, bytes);
    disk.overwrite(kNewest / kManifestName, encode_manifest(manifest));
  }

  TemporaryFolder run;
  RunLock lock{run.path()};
  CrashVfs disk = make_run(lock, 1);
};

TEST_F(CheckpointCorruption, EveryFlippedByteOfHeadersManifestAndState) {
  for (const std::string& name : files()) {
    const std::string good = bytes_of(name);
    const std::size_t end = name.ends_with(".safetensors") ? header_end(good) : good.size();
    for (std::size_t at = 0; at < end; ++at) {
      SCOPED_TRACE(str(name, " byte ", at));
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
      expect_found(name, bad);
    }
  }
  expect_checkpoint(CheckpointStore(disk, kFolder).load_latest(), 2);
}

TEST_F(CheckpointCorruption, AThousandFlippedPayloadBits) {
  const RngStream stream(1, "corruption", "bits");
  const std::vector<std::string> names{"mask.safetensors", "model.safetensors", "optimizer.safetensors"};
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::string& name = names[i % names.size()];
    std::string bad = bytes_of(name);
    const std::size_t begin = header_end(bad);
    const auto bit = static_cast<std::size_t>(random_below(stream, 0, i, static_cast<std::int64_t>(8 * (bad.size() - begin))));
    SCOPED_TRACE(str(name, " payload bit ", bit));
    bad[begin + bit / 8] = static_cast<char>(bad[begin + bit / 8] ^ (1 << (bit % 8)));
    expect_found(name, bad);
  }
}

TEST_F(CheckpointCorruption, FilesCutAtAndBesideEveryBoundary) {
  int cuts = 0;
  for (const std::string& name : files()) {
    const std::string good = bytes_of(name);
    for (const std::size_t boundary : boundaries(name, good)) {
      for (const std::size_t size : {boundary == 0 ? 0 : boundary - 1, boundary, boundary + 1}) {
        if (size == good.size()) continue;
        SCOPED_TRACE(str(name, " of ", good.size(), " bytes cut to ", size));
        expect_found(name, size < good.size() ? good.substr(0, size) : good + '\n');
        ++cuts;
      }
    }
  }
  EXPECT_GT(cuts, 150);
}

TEST_F(CheckpointCorruption, FilesOfAnotherCheckpointOfTheRun) {
  for (const std::string& name : files()) {
    SCOPED_TRACE(name);
    expect_found(name, disk.read_file(kFolder / "step-00000001" / name));
  }
}

TEST_F(CheckpointCorruption, FilesOfAnotherRun) {
  CrashVfs other = make_run(lock, 11);
  for (const std::string& name : files()) {
    SCOPED_TRACE(name);
    const std::string foreign = other.read_file(kNewest / name);
    if (name != kManifestName) {
      expect_found(name, foreign);
      continue;
    }
    // The foreign manifest is intact but has other hashes of its files. The first file that differs is the one reported.
    const std::string good = bytes_of(name);
    disk.overwrite(kNewest / name, foreign);
    expect_found("mask.safetensors");
    disk.overwrite(kNewest / name, good);
  }
}

TEST_F(CheckpointCorruption, MissingFiles) {
  for (const std::string& name : files()) {
    SCOPED_TRACE(name);
    CrashVfs untouched = disk.image(Survival::everything, 0);
    disk.remove(kNewest / name);
    expect_found(name);
    disk = std::move(untouched);
  }
}

// Only files that the manifest lists are read, so an editor's backup does no harm. It is removed along with the folder.
TEST_F(CheckpointCorruption, AdditionalFilesAreNotRead) {
  disk.make_directory(kNewest / "notes");
  for (const char* name : {"extra.safetensors", "model.safetensors~", ".DS_Store", "notes/today"}) {
    disk.create(kNewest / name)->write("not ours");
  }
  const Checkpoint checkpoint = CheckpointStore(disk, kFolder).load_latest();
  expect_checkpoint(checkpoint, 2);
  EXPECT_TRUE(checkpoint.damaged.empty());
  CheckpointStore store(disk, kFolder, 1);
  store.open_for_writing(lock);
  EXPECT_TRUE(store.save(3, parts_at(3), extra_at(3)).warnings.empty());
  EXPECT_EQ(disk.list(kFolder).size(), 2u) << "step-00000003 and latest";
}

TEST_F(CheckpointCorruption, EachDamagedCheckpointIsToldOf) {
  CheckpointStore store(disk, kFolder);
  store.open_for_writing(lock);
  store.save(3, parts_at(3), extra_at(3));
  disk.overwrite(kFolder / "step-00000003/MANIFEST.json", "");
  disk.overwrite(kNewest / "state.json", "{}");
  const Checkpoint checkpoint = store.load_latest();
  expect_checkpoint(checkpoint, 1);
  ASSERT_EQ(checkpoint.damaged.size(), 2u);
  EXPECT_NE(checkpoint.damaged[0].find("step-00000003/MANIFEST.json: does not end in its own hash"), std::string::npos);
  EXPECT_NE(checkpoint.damaged[1].find("step-00000002/state.json: file has 2 bytes"), std::string::npos);
}

// Files with invalid content whose hashes all match, as a faulty writer would leave them.
TEST_F(CheckpointCorruption, ForgedFilesAreErrorsToo) {
  for (const char* state : {"", "[]", "{\"model\": ", "nonsense", "{\"a\": 1, \"a\": 2}"}) {
    SCOPED_TRACE(state);
    forge("state.json", state);
    expect_found("state.json");
  }
  disk = make_run(lock, 1);
  for (const std::string& part : {std::string(), std::string("short"), bytes_of("model.safetensors").substr(0, 400)}) {
    SCOPED_TRACE(part.size());
    forge("model.safetensors", part);
    expect_found("model.safetensors");
  }
}

}  // namespace
}  // namespace tessera
