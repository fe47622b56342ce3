// Small data files in a folder of their own, for the reader tests.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/core/io/temporary_folder.h"

namespace tessera::test {

// A fresh folder, removed at the end of the test.
class DataFiles : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(root_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  void write_gz(const std::string& name, const std::string& bytes) const {
    const gzFile file = gzopen((root_ / name).c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
  }

  TemporaryFolder folder_;
  std::filesystem::path root_ = folder_.path();
};

}  // namespace tessera::test
