#include "tests/train/checkpoint/crash_sweep.h"

#include <gtest/gtest.h>

#include "tests/core/io/forwarding_vfs.h"
#include "train/checkpoint/manifest.h"

namespace tessera {
namespace {

TEST(CrashSweep, TheStoreSurvivesACrashAtEveryOperation) {
  const CrashSweep sweep = sweep_crashes([](Vfs& disk) { return std::make_unique<ForwardingVfs>(disk); });
  for (const std::string& violation : sweep.violations) ADD_FAILURE() << violation;
  RecordProperty("operations", sweep.operations);
  RecordProperty("crash_points", sweep.points);
  std::printf("%d crash points at %d operations\n", sweep.points, sweep.operations);
  EXPECT_GE(sweep.points, 200);
}

// The tests below check that the sweep detects faults. Each runs the real store over a file system that breaks one rule.
void expect_caught(const Sabotage& sabotage, const std::string& symptom) {
  const CrashSweep sweep = sweep_crashes(sabotage, symptom);
  bool found = false;
  for (const std::string& violation : sweep.violations) found = found || violation.find(symptom) != std::string::npos;
  EXPECT_TRUE(found) << sweep.violations.size() << " violations, none with: " << symptom;
}

class UnsyncedFiles final : public ForwardingVfs {
 public:
  using ForwardingVfs::ForwardingVfs;
  std::unique_ptr<WritableFile> create(const Path& path) override { return std::make_unique<File>(below_.create(path)); }

 private:
  class File final : public ForwardingFile {
   public:
    using ForwardingFile::ForwardingFile;
    void sync() override {}
  };
};

class UnsyncedDirectories final : public ForwardingVfs {
 public:
  using ForwardingVfs::ForwardingVfs;
  void sync_directory(const Path&) override {}
};

// Renames a checkpoint to its final name as soon as the manifest is written, and writes its parts only afterwards.
class ManifestFirst final : public ForwardingVfs {
 public:
  using ForwardingVfs::ForwardingVfs;
  std::unique_ptr<WritableFile> create(const Path& path) override {
    const bool is_part = path.parent_path().filename().string().starts_with(".tmp-") && path.filename() != kManifestName;
    if (!is_part) return below_.create(path);
    return std::make_unique<Held>(held_[path.filename().string()]);
  }
  void rename(const Path& from, const Path& to) override {
    below_.rename(from, to);
    below_.sync_directory(to.parent_path());
    for (const auto& [name, bytes] : std::exchange(held_, {})) {
      const auto file = below_.create(to / name);
      file->write(bytes);
      file->sync();
      file->close();
    }
    below_.sync_directory(to);
  }

 private:
  class Held final : public WritableFile {
   public:
    explicit Held(std::string& bytes) : bytes_(bytes) {}
    void write(std::string_view bytes) override { bytes_ += bytes; }
    void sync() override {}
    void close() override {}

   private:
    std::string& bytes_;
  };
  std::map<std::string, std::string> held_;
};

// Removes old checkpoints before the new one is durable and verified.
class RemovesTheOldFirst final : public ForwardingVfs {
 public:
  using ForwardingVfs::ForwardingVfs;
  void rename(const Path& from, const Path& to) override {
    if (to.filename().string().starts_with("step-")) {
      for (const DirectoryEntry& entry : below_.list(to.parent_path())) {
        if (entry.name.starts_with("step-")) below_.remove_tree(to.parent_path() / entry.name);
      }
    }
    below_.rename(from, to);
  }
};

TEST(CrashSweep, SeesFilesThatAreNotSynced) {
  expect_caught([](Vfs& disk) { return std::make_unique<UnsyncedFiles>(disk); }, "the last good checkpoint does not load");
}

TEST(CrashSweep, SeesDirectoriesThatAreNotSynced) {
  expect_caught([](Vfs& disk) { return std::make_unique<UnsyncedDirectories>(disk); }, "the last good checkpoint does not load");
}

TEST(CrashSweep, SeesAManifestBeforeItsParts) {
  expect_caught([](Vfs& disk) { return std::make_unique<ManifestFirst>(disk); }, "damaged: ");
}

TEST(CrashSweep, SeesAnOldCheckpointRemovedTooEarly) {
  expect_caught([](Vfs& disk) { return std::make_unique<RemovesTheOldFirst>(disk); }, "the last good checkpoint does not load");
}

}  // namespace
}  // namespace tessera
