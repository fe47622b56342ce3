// Every call of opening a run and saving to it fails in turn, once or permanently, above the file system and below it. The last
// good checkpoint must load bit-equal, and an error must name the operation, the path and the reason.
#include <gtest/gtest.h>

#include <functional>

#include "tests/core/io/crash_vfs.h"
#include "tests/core/io/faulty_calls.h"
#include "tests/train/checkpoint/store_fixture.h"
#include "tests/train/checkpoint/store_invariants.h"

namespace tessera {
namespace {

using Path = std::filesystem::path;

const SaveAction kSaved{6, 6, {3}};

struct Outcome {
  bool saved = false;
  std::string error;  // the exception's message, or the first warning
};

class ErrorSweep : public ::testing::Test {
 protected:
  // Saves steps 3, 4 and 5. Step 3 is pinned, but only the manifest of step 5 says so.
  void prepare(Vfs& vfs, const Path& folder) const {
    CheckpointStore store(vfs, folder, kSweepKeep);
    store.open_for_writing(lock);
    for (const std::int64_t step : {3, 4, 5}) {
      if (step == 5) store.pin(3);
      store.save(step, parts_at(step), extra_at(step));
    }
  }

  Outcome open_and_save(
      Vfs& vfs, const Path& folder, const std::function<void()>& opened = [] {}) const {
    Outcome outcome;
    try {
      CheckpointStore store(vfs, folder, kSweepKeep);
      store.open_for_writing(lock);
      opened();
      const SaveResult result = store.save(kSaved.step, parts_at(kSaved.content), extra_at(kSaved.content));
      outcome.saved = true;
      if (!result.warnings.empty()) outcome.error = result.warnings.front();
    } catch (const IoError& error) {
      outcome.error = error.what();
    }
    return outcome;
  }

  // `below` is the same file system without the fault.
  void expect_sound(const Outcome& outcome, Expectation expectation, Vfs& below, const Path& folder) const {
    if (outcome.saved) {
      expectation.standing[kSaved.step] = kSaved.content;
      expectation.saving.reset();
    }
    if (outcome.error.empty()) expectation.most_pins += expectation.standing.size();  // see may_be_silent
    for (const std::string& broken : broken_invariants(below, folder, lock, expectation)) ADD_FAILURE() << broken;
  }

  static void expect_clear(const std::string& error, int reason, const Path& folder) {
    for (const std::string& text : {std::string(" failed: path is "), folder.string(), std::string(std::strerror(reason))}) {
      EXPECT_NE(error.find(text), std::string::npos) << "'" << error << "'\n  lacks: " << text;
    }
  }

  TemporaryFolder run;
  RunLock lock{run.path()};
};

// Failures that need no message. If a manifest cannot be read on opening, its pins are unknown and every checkpoint is kept. A
// failed close of a file that was only read loses nothing.
bool may_be_silent(const std::string& operation, bool opening) {
  const bool reads =
      operation.starts_with("open ") || operation.starts_with("read ") || operation.find("stat ") != std::string::npos;
  return operation.starts_with("release ") || (opening && reads && operation.ends_with(kManifestName));
}

TEST_F(ErrorSweep, AboveTheFileSystem) {
  const Path folder = "/checkpoints";
  CrashVfs disk;
  prepare(disk, folder);
  const Expectation expectation = expectation_of(disk, folder, kSaved);
  CrashVfs counted = disk.image(Survival::everything, 0);
  FaultyVfs counter({.reads = true}, counted);
  int opening = 0;
  ASSERT_EQ(open_and_save(counter, folder, [&] { opening = counter.operations(); }).error, "");
  ASSERT_GT(counter.operations(), 60);
  for (int at = 0; at < counter.operations(); ++at) {
    for (const Fault fault : {Fault::once, Fault::lasting}) {
      for (const int error : {EIO, ENOSPC}) {
        const std::string& operation = counter.log()[static_cast<std::size_t>(at)];
        SCOPED_TRACE(
            str("operation ", at, " (", operation, ") ", fault == Fault::once ? "once: " : "lasting: ", std::strerror(error)));
        CrashVfs copy = disk.image(Survival::everything, 0);
        FaultyVfs faulty({.at = at, .fault = fault, .error = error, .reads = true}, copy);
        const Outcome outcome = open_and_save(faulty, folder);
        if (!outcome.error.empty() || !may_be_silent(operation, at < opening)) expect_clear(outcome.error, error, folder);
        expect_sound(outcome, expectation, copy, folder);
      }
    }
  }
}

// Changes bytes on their way to the disk. Reading back finds that before an old checkpoint is removed.
class CorruptingVfs final : public ForwardingVfs {
 public:
  CorruptingVfs(Vfs& below, int corrupted) : ForwardingVfs(below), corrupted_(corrupted) {}
  int writes() const noexcept { return writes_; }
  std::unique_ptr<WritableFile> create(const Path& path) override {
    return std::make_unique<File>(*this, below_.create(path), path.filename() == "latest");
  }

 private:
  class File final : public ForwardingFile {
   public:
    File(CorruptingVfs& vfs, std::unique_ptr<WritableFile> below, bool spared)
        : ForwardingFile(std::move(below)), vfs_(vfs), spared_(spared) {}
    void write(std::string_view bytes) override {
      std::string altered(bytes);
      if (!spared_ && vfs_.writes_++ == vfs_.corrupted_ && !altered.empty()) altered[altered.size() / 2] ^= 4;
      below_->write(altered);
    }

   private:
    CorruptingVfs& vfs_;
    bool spared_;
  };
  int corrupted_;
  int writes_ = 0;
};

TEST_F(ErrorSweep, WritesThatAlterBytesAreFoundBeforeAnOldCheckpointGoes) {
  const Path folder = "/checkpoints";
  CrashVfs disk;
  prepare(disk, folder);
  const Expectation expectation = expectation_of(disk, folder, kSaved);
  constexpr int kWrites = 12;  // length, header and tensors of three parts, then the state and the manifest
  for (int at = 0; at < kWrites; ++at) {
    SCOPED_TRACE(str("write ", at));
    CrashVfs copy = disk.image(Survival::everything, 0);
    CorruptingVfs corrupting(copy, at);
    const Outcome outcome = open_and_save(corrupting, folder);
    EXPECT_NE(outcome.error.find("step-00000006 failed its check after saving; the earlier ones stand: "), std::string::npos)
        << outcome.error;
    EXPECT_EQ(corrupting.writes(), kWrites);
    expect_sound(outcome, expectation, copy, folder);
  }
}

// Lets each system call below RealVfs fail in turn. Each run gets a fresh copy of a prepared folder.
class CallSweep : public ErrorSweep {
 protected:
  CallSweep() {
    prepare(real_vfs(), prepared);
    expectation = expectation_of(real_vfs(), prepared, kSaved);
    FaultyCalls faultless;
    EXPECT_EQ(run_once(faultless, [&] { opening = faultless.log().size(); }).error, "");
    calls = faultless.log();
    EXPECT_GT(calls.size(), 100u);
  }

  Outcome run_once(
      FaultyCalls& faulty, const std::function<void()>& opened = [] {}) const {
    std::filesystem::remove_all(folder);
    std::filesystem::copy(prepared, folder, std::filesystem::copy_options::recursive);
    RealVfs vfs(faulty);
    const Outcome outcome = open_and_save(vfs, folder, opened);
    EXPECT_EQ(faulty.open_handles(), 0u) << "a descriptor leaks";
    return outcome;
  }

  void sweep(int error, Fault fault) const {
    for (std::size_t at = 0; at < calls.size(); ++at) {
      SCOPED_TRACE(str("call ", at, " (", calls[at], ") ", fault == Fault::once ? "once: " : "lasting: ", std::strerror(error)));
      FaultyCalls faulty({.at = static_cast<int>(at), .fault = fault, .error = error});
      const Outcome outcome = run_once(faulty);
      if (error == EINTR && fault == Fault::once && is_repeated(calls[at])) {
        EXPECT_EQ(outcome.error, "");
      } else if (!outcome.error.empty() || !may_be_silent(calls[at], at < opening)) {
        expect_clear(outcome.error, error, folder);
      }
      expect_sound(outcome, expectation, real_vfs(), folder);
    }
  }

  static bool is_repeated(const std::string& call) {
    const std::string name = call.substr(0, call.find(' '));
    return name == "open" || name == "create" || name == "read" || name == "write";
  }

  const Path prepared = run.path() / "prepared";
  const Path folder = run.path() / "checkpoints";
  Expectation expectation;
  std::vector<std::string> calls;  // the calls of a run without faults
  std::size_t opening = 0;  // how many of `calls` come before the save
};

TEST_F(CallSweep, InputOutputErrorOnce) { sweep(EIO, Fault::once); }
TEST_F(CallSweep, InputOutputErrorLasting) { sweep(EIO, Fault::lasting); }
TEST_F(CallSweep, NoSpaceOnce) { sweep(ENOSPC, Fault::once); }
TEST_F(CallSweep, NoSpaceLasting) { sweep(ENOSPC, Fault::lasting); }
TEST_F(CallSweep, InterruptOnce) { sweep(EINTR, Fault::once); }
TEST_F(CallSweep, InterruptLasting) { sweep(EINTR, Fault::lasting); }

TEST_F(CallSweep, ShortReadsAndWritesGoOn) {
  for (const Fault fault : {Fault::once, Fault::lasting}) {
    for (std::size_t at = 0; at < calls.size(); ++at) {
      if (!calls[at].starts_with("read ") && !calls[at].starts_with("write ")) continue;
      SCOPED_TRACE(str("call ", at, " (", calls[at], fault == Fault::once ? ") once" : ") lasting"));
      FaultyCalls faulty({.at = static_cast<int>(at), .fault = fault, .error = kShort});
      const Outcome outcome = run_once(faulty);
      EXPECT_TRUE(outcome.saved);
      EXPECT_EQ(outcome.error, "");
      expect_sound(outcome, expectation, real_vfs(), folder);
    }
  }
}

}  // namespace
}  // namespace tessera
