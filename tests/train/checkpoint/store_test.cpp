#include "train/checkpoint/store.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "core/support/hash.h"
#include "tests/core/io/expect_error.h"
#include "tests/support/message_of.h"
#include "tests/train/checkpoint/store_fixture.h"

namespace tessera {
namespace {

TEST_F(CheckpointStoreTest, LoadsWhatItSaved) {
  CheckpointStore store = writer();
  save(store, 1200);
  EXPECT_EQ(names(), "latest step-00001200 ");
  EXPECT_EQ(bytes_of("latest"), "step-00001200\n");
  expect_checkpoint(reader().load_latest(), 1200);
  expect_checkpoint(reader().load(1200), 1200);
  EXPECT_TRUE(reader().load_latest().damaged.empty());
}

TEST_F(CheckpointStoreTest, WritesTheSameBytesForTheSameState) {
  CheckpointStore store = writer();
  save(store, 5);
  save(store, 5);
  for (const DirectoryEntry& entry : real_vfs().list(folder / "step-00000005.1")) {
    EXPECT_FALSE(bytes_of("step-00000005.1/" + entry.name).empty());
  }
  EXPECT_EQ(names(), "latest step-00000005.1 ");
  const std::string first = bytes_of("step-00000005.1/MANIFEST.json");
  save(store, 5);
  EXPECT_EQ(bytes_of("step-00000005.2/MANIFEST.json"), first);
}

TEST_F(CheckpointStoreTest, SavingAStepAgainLoadsTheLaterState) {
  CheckpointStore store = writer();
  save(store, 5);
  Parts changed = parts_at(5);
  changed["model"].tensors["conv1.weight"].fill(42);
  store.save(5, changed, extra_at(5));
  EXPECT_EQ(reader().load_latest().parts.at("model").tensors.at("conv1.weight").to_vector<float>(),
            (std::vector<float>{42, 42, 42}));
}

TEST_F(CheckpointStoreTest, KeepsTheNewestAndThePinned) {
  CheckpointStore store = writer(2);
  store.pin(2);
  store.pin(4);
  for (std::int64_t step = 1; step <= 7; ++step) save(store, step);
  EXPECT_EQ(reader().steps(), (std::vector<std::int64_t>{2, 4, 6, 7}));
  store.unpin(2);
  save(store, 8);
  EXPECT_EQ(reader().steps(), (std::vector<std::int64_t>{4, 7, 8}));
  expect_checkpoint(reader().load(4), 4);
}

TEST_F(CheckpointStoreTest, RemembersPinsAcrossProcesses) {
  {
    CheckpointStore store = writer(1);
    store.pin(1);
    save(store, 1);
    save(store, 2);
  }
  CheckpointStore store = writer(1);
  save(store, 3);
  EXPECT_EQ(reader().steps(), (std::vector<std::int64_t>{1, 3}));
}

TEST_F(CheckpointStoreTest, OrdersStepsByNumberPastEightDigits) {
  CheckpointStore store = writer();
  save(store, 99'999'999);
  save(store, 100'000'000);
  expect_checkpoint(reader().load_latest(), 100'000'000);
}

TEST_F(CheckpointStoreTest, OpeningRemovesLeftoversAndNothingElse) {
  {
    CheckpointStore store = writer();
    save(store, 1);
  }
  for (const char* name : {".tmp-2-99-0", ".trash-step-00000000-99-1", "mine"}) {
    std::filesystem::create_directory(folder / name);
    overwrite(std::string(name) + "/file", "x");
  }
  overwrite(".latest.tmp-99-0", "x");
  reader().load_latest();
  EXPECT_NE(names().find(".tmp-2-99-0"), std::string::npos) << "reading removed a folder that a writer may be filling";
  writer();
  EXPECT_EQ(names(), "latest mine step-00000001 ");
}

TEST_F(CheckpointStoreTest, EveryFlippedByteIsFoundAndTheOlderOneLoads) {
  CheckpointStore store = writer();
  save(store, 1);
  save(store, 2);
  for (const DirectoryEntry& entry : real_vfs().list(folder / "step-00000002")) {
    const std::string name = "step-00000002/" + entry.name;
    const std::string good = bytes_of(name);
    for (std::size_t at = 0; at < good.size(); at += 1 + good.size() / 41) {
      SCOPED_TRACE(str(name, " byte ", at));
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1);
      overwrite(name, bad);
      const Checkpoint checkpoint = reader().load_latest();
      expect_checkpoint(checkpoint, 1);
      ASSERT_EQ(checkpoint.damaged.size(), 1u);
      EXPECT_NE(checkpoint.damaged[0].find(name), std::string::npos) << checkpoint.damaged[0];
    }
    overwrite(name, good);
  }
  expect_checkpoint(reader().load_latest(), 2);
}

TEST_F(CheckpointStoreTest, TornAndMissingFilesAreNamed) {
  CheckpointStore store = writer();
  save(store, 1);
  save(store, 2);
  const std::string name = "step-00000002/optimizer.safetensors";
  const std::string good = bytes_of(name);
  overwrite(name, good.substr(0, good.size() / 2));
  expect_io_error([&] { reader().load(2); },
                  {"no intact checkpoint", name, str("file has ", good.size() / 2, " bytes, manifest says ", good.size())});
  std::filesystem::remove(folder / name);
  expect_io_error([&] { reader().load(2); }, {name, "No such file or directory"});
  std::filesystem::remove(folder / "step-00000002/MANIFEST.json");
  expect_io_error([&] { reader().load(2); }, {"step-00000002/MANIFEST.json", "No such file or directory"});
  expect_checkpoint(reader().load_latest(), 1);
}

TEST_F(CheckpointStoreTest, SwappedFilesAreFound) {
  CheckpointStore store = writer();
  save(store, 1);
  save(store, 2);
  const std::filesystem::path two = folder / "step-00000002";
  std::filesystem::copy_file(folder / "step-00000001/model.safetensors", two / "model.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  expect_io_error([&] { reader().load(2); }, {"step-00000002/model.safetensors: hash is", "manifest says"});
  std::filesystem::remove_all(two);
  std::filesystem::copy(folder / "step-00000001", two, std::filesystem::copy_options::recursive);
  expect_io_error([&] { reader().load(2); }, {"step is 1, the folder is named step-00000002"});
}

TEST_F(CheckpointStoreTest, ListsEveryDamageWhenNoneIsIntact) {
  CheckpointStore store = writer();
  save(store, 1);
  save(store, 2);
  overwrite("step-00000001/state.json", "{}");
  overwrite("step-00000002/model.safetensors", "");
  expect_io_error([&] { reader().load_latest(); }, {"no intact checkpoint in", "step-00000001/state.json: file has 2 bytes",
                                                    "step-00000002/model.safetensors: file has 0 bytes"});
}

TEST_F(CheckpointStoreTest, MissingCheckpointsAreErrors) {
  EXPECT_TRUE(reader().empty());
  expect_io_error([&] { reader().load_latest(); }, {"no intact checkpoint in"});
  expect_io_error([&] { reader().load(7); }, {"no step-00000007 in"});
}

// After falling back past a damaged checkpoint, a save at a smaller step must survive the removal of old ones.
TEST_F(CheckpointStoreTest, ASaveBeforeADamagedStepIsKept) {
  CheckpointStore store = writer(1);
  save(store, 10);
  overwrite("step-00000010/model.safetensors", "");
  save(store, 7);
  EXPECT_EQ(reader().steps(), (std::vector<std::int64_t>{7}));
  expect_checkpoint(reader().load_latest(), 7);
}

TEST_F(CheckpointStoreTest, RefusesToSaveWithoutTheLockOrOddNames) {
  CheckpointStore unopened = reader();
  EXPECT_THROW(unopened.save(1, {}, Value::map()), InternalError);
  CheckpointStore store = writer();
  for (const char* name : {"", ".hidden", "a/b", "a b"})
    EXPECT_THROW(store.save(1, {{name, {}}}, Value::map()), InternalError) << name;
  Value clash = Value::map();
  clash.set("files", 1);
  EXPECT_THROW(store.save(1, {}, clash), InternalError);
  EXPECT_EQ(names(), "") << "a refused save left something";
  EXPECT_THROW(CheckpointStore(real_vfs(), folder, 0), ConfigError);
}

TEST_F(CheckpointStoreTest, ChecksFreeSpaceFirst) {
  FaultyVfs vfs;
  CheckpointStore store = writer(vfs);
  vfs.reported_free_space = 1000;
  const int before = vfs.operations();
  expect_io_error([&] { store.save(1, parts_at(1), extra_at(1)); }, {"not enough space", "1000 bytes free", "needed"});
  EXPECT_EQ(vfs.operations(), before);
}

// Formats older and newer than ours. Such a checkpoint is not damaged, so the reader does not fall back to the one before.
TEST_F(CheckpointStoreTest, RefusesEveryOtherFormat) {
  CheckpointStore store = writer();
  save(store, 1);
  save(store, 2);
  const std::string own = bytes_of("step-00000002/MANIFEST.json");
  const std::string key = str("\"format_version\": ", kCheckpointFormatVersion);
  const std::size_t at = own.find(key);
  ASSERT_NE(at, std::string::npos);
  for (const std::int64_t version : {kCheckpointFormatVersion - 1, kCheckpointFormatVersion + 1}) {
    std::string text = own;
    text.replace(at, key.size(), str("\"format_version\": ", version));
    const std::string sealed = text.substr(0, text.rfind(",\n  \"xxh3_128\""));
    overwrite("step-00000002/MANIFEST.json", str(sealed, ",\n  \"xxh3_128\": \"", xxh3_128(sealed), "\"\n}\n"));
    const std::string message = str("format_version is ", version, ", this tessera reads ", kCheckpointFormatVersion);
    for (const std::string& told : {message_of<CheckpointVersionError>([&] { reader().load(2); }),
                                    message_of<CheckpointVersionError>([&] { reader().load_latest(); })}) {
      EXPECT_NE(told.find(message), std::string::npos) << told;
    }
  }
}

}  // namespace
}  // namespace tessera
