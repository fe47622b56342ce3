#include "train/report/export_onnx.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"
#include "tests/train/onnx/onnx_networks.h"
#include "train/onnx/encode.h"

namespace tessera {
namespace {

void export_linear(const std::filesystem::path& file, const std::optional<NetworkUse>& use = {}) {
  export_onnx(real_vfs(), *testing::onnx_network("linear"), testing::onnx_input("linear"), use, file);
}

TEST(ExportOnnx, NeverReplacesAFile) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "net.onnx";
  write_file_atomically(real_vfs(), file, "mine");
  EXPECT_EQ(message_of<ConfigError>([&] { export_linear(file); }),
            str("export: ", file.string(), " is there already; give another file"));
  EXPECT_EQ(real_vfs().read_file(file), "mine");
}

TEST(ExportOnnx, NeverReplacesALink) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "net.onnx";
  std::filesystem::create_symlink("elsewhere.onnx", file);
  EXPECT_EQ(message_of<ConfigError>([&] { export_linear(file); }),
            str("export: ", file.string(), " is there already; give another file"));
  EXPECT_TRUE(std::filesystem::is_symlink(file));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "elsewhere.onnx"));
}

// Protobuf stores strings verbatim, so that the file's bytes contain them.
TEST(ExportOnnx, SaysWhatTheRunLearntAndItsSamples) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "new" / "net.onnx";
  const Value data = parse_json(R"({"classes": ["cat", "dog"], "preprocessing": {"mean": [0.5], "std": [0.25]}})", "test");
  export_linear(file, NetworkUse{.task = "classification", .precision = "bf16", .data = data});
  const std::string bytes = real_vfs().read_file(file);
  for (const char* const text :
       {"tessera.task", "classification", "tessera.precision", "bf16", "tessera.classes", R"(["cat","dog"])",
        "tessera.preprocessing", R"({"mean":[0.5],"std":[0.25]})", "tessera.version"}) {
    EXPECT_NE(bytes.find(text), std::string::npos) << text;
  }
}

TEST(ExportOnnx, WritesNothingWhereAWeightIsNotFinite) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "net.onnx";
  const auto model = testing::onnx_network("linear");
  model->child("0").parameter("bias").value().fill(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(message_of<NumericError>([&] {
              export_onnx(real_vfs(), *model, {1, 24}, {}, file);
            }),
            "fold: '0.bias' contains NaN or Inf");
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace tessera
