#include "train/checkpoint/store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>

#include "core/error.h"
#include "core/io/hash.h"
#include "core/io/safetensors.h"
#include "tests/core/io/expect_error.h"
#include "tests/core/io/faulty_vfs.h"
#include "tests/core/io/temporary_folder.h"

namespace tessera {
namespace {

using Parts = std::map<std::string, State>;

// Parts whose every value depends on the step, so that no two checkpoints can be taken for each other.
Parts parts_at(std::int64_t step) {
  const auto f = static_cast<float>(step);
  Parts parts;
  parts["model"].tensors["conv1.weight"] = Tensor::from<float>({f, f + 0.1f, -f}, {1, 3, 1, 1});
  parts["model"].tensors["empty"] = Tensor::zeros({0, 3});
  parts["optimizer"].tensors["conv1.weight.momentum"] = Tensor::full({7}, static_cast<double>(step) / 3, DType::f64);
  parts["optimizer"].meta.set("lr", 0.1 / static_cast<double>(step + 1));
  parts["mask"].tensors["conv1.weight"] = Tensor::from<std::uint8_t>({1, 0, 1}, {3});
  parts["hook.stop"].meta.set("best", static_cast<double>(step));
  parts["hook.none"];
  return parts;
}

Value extra_at(std::int64_t step) {
  Value extra = Value::map();
  extra.set("data", Value::map()).set("samples", step * 128);
  extra.set("modules", Value::list({"conv", Value(3), Value(0.1)}));
  return extra;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

void expect_checkpoint(const Checkpoint& checkpoint, std::int64_t step) {
  EXPECT_EQ(checkpoint.step, step);
  EXPECT_EQ(checkpoint.manifest, extra_at(step));
  const Parts expected = parts_at(step);
  ASSERT_EQ(checkpoint.parts.size(), expected.size());
  for (const auto& [name, state] : expected) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(checkpoint.parts.contains(name));
    const State& found = checkpoint.parts.at(name);
    EXPECT_EQ(found.meta, state.meta);
    ASSERT_EQ(found.tensors.size(), state.tensors.size());
    for (const auto& [path, tensor] : state.tensors) EXPECT_TRUE(same(tensor, found.tensors.at(path))) << path;
  }
}

class CheckpointStoreTest : public ::testing::Test {
 protected:
  CheckpointStore writer(int keep = 3) { return writer(real_vfs(), keep); }
  CheckpointStore writer(Vfs& vfs, int keep = 3) {
    CheckpointStore store(vfs, folder, keep);
    store.open_for_writing(lock);
    return store;
  }
  static void save(CheckpointStore& store, std::int64_t step) {
    const SaveResult result = store.save(step, parts_at(step), extra_at(step));
    EXPECT_TRUE(result.warnings.empty()) << result.warnings.front();
  }
  CheckpointStore reader() { return CheckpointStore(real_vfs(), folder); }
  std::string names() {
    std::string text;
    for (const DirectoryEntry& entry : real_vfs().list(folder)) text += entry.name + " ";
    return text;
  }
  void overwrite(const std::string& name, std::string_view bytes) {
    std::ofstream(folder / name, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::string bytes_of(const std::string& name) { return real_vfs().read_file(folder / name); }

  TemporaryFolder run;
  RunLock lock{run.path()};
  std::filesystem::path folder = run.path() / "checkpoints";
};

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
  EXPECT_EQ(reader().load_latest().parts.at("model").tensors.at("conv1.weight").to_vector<float>(), (std::vector<float>{42, 42, 42}));
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
  expect_io_error([&] { reader().load(2); }, {"no intact checkpoint", name, str("file has ", good.size() / 2, " bytes, manifest says ", good.size())});
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
  expect_io_error([&] { reader().load_latest(); },
                  {"no intact checkpoint in", "step-00000001/state.json: file has 2 bytes", "step-00000002/model.safetensors: file has 0 bytes"});
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
  for (const char* name : {"", ".hidden", "a/b", "a b"}) EXPECT_THROW(store.save(1, {{name, {}}}, Value::map()), InternalError) << name;
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

TEST_F(CheckpointStoreTest, RefusesANewerFormat) {
  CheckpointStore store = writer();
  save(store, 1);
  std::string text = bytes_of("step-00000001/MANIFEST.json");
  const std::size_t at = text.find("\"format_version\": 1");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 19, "\"format_version\": 9");
  const std::size_t seal = text.rfind(",\n  \"xxh3_128\"");
  text = text.substr(0, seal) + ",\n  \"xxh3_128\": \"" + xxh3_128(text.substr(0, seal)) + "\"\n}\n";
  overwrite("step-00000001/MANIFEST.json", text);
  expect_io_error([&] { reader().load(1); }, {"format_version is 9, this tessera reads up to 1"});
}

// Every operation of a save fails in turn, once or with everything after it. The earlier checkpoint or the new one loads, whole.
TEST_F(CheckpointStoreTest, NoFailureLosesACheckpoint) {
  int operations = 0;
  {
    FaultyVfs counter;
    CheckpointStore store = writer(counter, 1);
    save(store, 1);
    const int before = counter.operations();
    save(store, 2);
    operations = counter.operations() - before;
  }
  ASSERT_GT(operations, 30);
  for (const Fault fault : {Fault::once, Fault::crash}) {
    for (int failing = 0; failing < operations; ++failing) {
      SCOPED_TRACE(str(fault == Fault::once ? "failing once" : "crashing", " at operation ", failing));
      std::filesystem::remove_all(folder);
      CheckpointStore first = writer(1);
      save(first, 1);
      FaultyVfs faulty(failing, fault);
      CheckpointStore store = writer(faulty, 1);
      ASSERT_EQ(faulty.operations(), 0);
      bool reported = false;
      try {
        reported = !store.save(2, parts_at(2), extra_at(2)).warnings.empty();
      } catch (const IoError& error) {
        reported = true;
        EXPECT_NE(std::string_view(error.what()).find("No space left on device"), std::string_view::npos) << error.what();
      }
      EXPECT_TRUE(reported) << "a failure went unseen";
      const Checkpoint checkpoint = reader().load_latest();
      expect_checkpoint(checkpoint, checkpoint.step == 2 ? 2 : 1);
      CheckpointStore again = writer(1);
      save(again, 3);
      EXPECT_EQ(names(), "latest step-00000003 ");
    }
  }
}

// The order of operations is what survives a power cut; nothing here can cut the power, so the order itself is checked.
TEST_F(CheckpointStoreTest, MakesEverythingDurableBeforeTheRename) {
  FaultyVfs vfs;
  CheckpointStore store = writer(vfs);
  const std::size_t start = vfs.log().size();
  save(store, 1);
  std::vector<std::string> log(vfs.log().begin() + static_cast<std::ptrdiff_t>(start), vfs.log().end());
  const auto index = [&](const std::string& line) { return std::ranges::find(log, line) - log.begin(); };
  const auto rename = index("rename step-00000001");
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "mask.safetensors", "state.json", "MANIFEST.json"}) {
    EXPECT_LT(index(str("create ", name)), index(str("sync ", name))) << name;
    EXPECT_LT(index(str("sync ", name)), index(str("close ", name))) << name;
    EXPECT_LT(index(str("close ", name)), rename) << name;
    EXPECT_LE(index(str("create ", name)), index("create MANIFEST.json")) << name;
  }
  ASSERT_GT(rename, 0);
  EXPECT_EQ(log[static_cast<std::size_t>(rename) - 1].substr(0, 13), "syncdir .tmp-");
  EXPECT_EQ(log[static_cast<std::size_t>(rename) + 1], "syncdir checkpoints");
}

}  // namespace
}  // namespace tessera
