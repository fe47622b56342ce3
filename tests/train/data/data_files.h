// Small data files in a folder of their own, for the reader tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"

namespace tessera::test {

// A fresh folder, removed at the end of the test.
class DataFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::temp_directory_path() /
            str("tessera_", ::getpid(), "_", info->test_suite_name(), "_", info->name());
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(root_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  void write_gz(const std::string& name, const std::string& bytes) const {
    const gzFile file = gzopen((root_ / name).c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
  }

  std::filesystem::path root_;
};

// The message of the IoError that `call` throws; empty when it throws none.
template <class Call>
std::string io_error(Call&& call) {
  try {
    call();
  } catch (const IoError& error) {
    return error.what();
  }
  return {};
}

}  // namespace tessera::test
