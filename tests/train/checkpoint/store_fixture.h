// Checkpoints whose content follows from their step, and the fixture that saves and checks them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "tests/core/io/faulty_vfs.h"
#include "tests/core/io/temporary_folder.h"
#include "train/checkpoint/store.h"

namespace tessera {

using Parts = std::map<std::string, State>;

// Parts whose every value depends on the step, so that no two checkpoints can be taken for each other.
inline Parts parts_at(std::int64_t step) {
  const auto f = static_cast<float>(step);
  Parts parts;
  parts["model"].tensors["conv1.weight"] = Tensor::from<float>({f, f + 0.1f, -f}, {1, 3, 1, 1});
  parts["model"].tensors["empty"] = Tensor::zeros({0, 3});
  parts["model"].tensors["fc.weight"] = Tensor::full({13, 31}, static_cast<double>(step) + 0.5, DType::f32);  // several sectors
  parts["optimizer"].tensors["conv1.weight.momentum"] = Tensor::full({7}, static_cast<double>(step) / 3, DType::f64);
  parts["optimizer"].meta.set("lr", 0.1 / static_cast<double>(step + 1));
  parts["mask"].tensors["conv1.weight"] = Tensor::from<std::uint8_t>({1, 0, static_cast<std::uint8_t>(step)}, {3});
  parts["hook.stop"].meta.set("best", static_cast<double>(step));
  parts["hook.none"];
  return parts;
}

inline Value extra_at(std::int64_t step) {
  Value extra = Value::map();
  extra.set("data", Value::map()).set("samples", step * 128);
  extra.set("modules", Value::list({"conv", Value(3), Value(0.1)}));
  return extra;
}

inline bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

// What is not as `content` was saved: "" when everything is.
inline std::string difference(const Checkpoint& checkpoint, std::int64_t step, std::int64_t content) {
  if (checkpoint.step != step) return str("step is ", checkpoint.step, ", not ", step);
  if (checkpoint.manifest != extra_at(content)) return "the manifest differs";
  const Parts expected = parts_at(content);
  if (checkpoint.parts.size() != expected.size()) return str("there are ", checkpoint.parts.size(), " parts");
  for (const auto& [name, state] : expected) {
    if (!checkpoint.parts.contains(name)) return str("part ", name, " is missing");
    const State& found = checkpoint.parts.at(name);
    if (found.meta != state.meta) return str("the meta of ", name, " differs");
    if (found.tensors.size() != state.tensors.size()) return str(name, " holds ", found.tensors.size(), " tensors");
    for (const auto& [path, tensor] : state.tensors) {
      if (!found.tensors.contains(path) || !same(tensor, found.tensors.at(path))) return str(name, ": ", path, " differs");
    }
  }
  return "";
}

inline void expect_checkpoint(const Checkpoint& checkpoint, std::int64_t step) {
  EXPECT_EQ(difference(checkpoint, step, step), "");
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

}  // namespace tessera
