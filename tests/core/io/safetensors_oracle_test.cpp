// A program that shares nothing with our reader reads our files: tests/oracle/read_safetensors.py (struct, json, numpy).
#include <gtest/gtest.h>

#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/python.h"

namespace tessera {
namespace {

TEST(SafetensorsOracle, PythonReadsTheSameTensors) {
  const std::string python = testing::python_with("numpy");
  if (python.empty()) GTEST_SKIP() << "python3 with numpy is not installed";
  SafetensorsFile file;
  file.metadata["tessera.layout"] = "OHWI";
  file.tensors["conv1.weight"] = Tensor::from<float>({1, -2, 3.5f, 0.25f, 0, 8}, {2, 1, 1, 3});
  file.tensors["scalar"] = Tensor::scalar(-7, DType::i64);
  file.tensors["double"] = Tensor::from<double>({0.1, 0.2}, {2});
  file.tensors["half"] = Tensor::full({5}, 0.25, DType::f16);
  file.tensors["brain"] = Tensor::full({3}, -1.5, DType::bf16);
  file.tensors["index"] = Tensor::from<std::int32_t>({-1, 4}, {1, 2});
  file.tensors["mask"] = Tensor::from<std::uint8_t>({1, 0, 255}, {3});
  file.tensors["none"] = Tensor::zeros({2, 0});
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "w.safetensors";
  write_file_atomically(real_vfs(), path, encode_safetensors(file));
  EXPECT_EQ(testing::output_of(python + " " TESSERA_ORACLE_FOLDER "/read_safetensors.py " + path.string() + " 2>&1"),
            "# format = pt\n"
            "# tessera.layout = OHWI\n"
            "brain BF16 [3] -4.5\n"
            "conv1.weight F32 [2, 1, 1, 3] 10.75\n"
            "double F64 [2] 0.30000000000000004\n"
            "half F16 [5] 1.25\n"
            "index I32 [1, 2] 3.0\n"
            "mask U8 [3] 256.0\n"
            "none F32 [2, 0] 0.0\n"
            "scalar I64 [] -7.0\n");
}

}  // namespace
}  // namespace tessera
