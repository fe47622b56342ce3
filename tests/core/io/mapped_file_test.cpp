#include "core/io/mapped_file.h"

#include <gtest/gtest.h>

#include "core/io/vfs.h"
#include "tests/core/io/expect_failure_of.h"
#include "tests/core/io/temporary_folder.h"

namespace tessera {
namespace {

class MappedFileTest : public ::testing::Test {
 protected:
  std::string put(const std::string& bytes) const {
    const std::string path = (folder.path() / "x").string();
    write_file_atomically(real_vfs(), path, bytes);
    return path;
  }

  TemporaryFolder folder;
};

TEST_F(MappedFileTest, HasTheBytes) {
  for (const std::string& bytes : {std::string(), std::string("a\0b\n\xff", 5), std::string(10'007, 'p')}) {
    const MappedFile file(put(bytes));
    EXPECT_EQ(file.bytes(), bytes);
  }
}

TEST_F(MappedFileTest, StaysWhenTheFileIsReplacedAndIsUnmappedAtTheEnd) {
  FaultyCalls calls;
  {
    const MappedFile file(put("old"), calls);
    put("new bytes");
    EXPECT_EQ(file.bytes(), "old");
    EXPECT_EQ(calls.open_handles(), 1u) << "the mapping, and no descriptor";
  }
  EXPECT_EQ(calls.open_handles(), 0u);
}

TEST_F(MappedFileTest, FailuresNamePathAndReason) {
  const std::string path = put("bytes");
  const auto map = [&](SystemCalls& calls) { MappedFile(path, calls); };
  for (const char* call : {"open", "fstat", "mmap"}) {
    expect_failure_of(call, EIO, map, "/x: cannot be mapped: Input/output error", 1);
  }
  expect_failure_of("open", EINTR, map, "/x: cannot be mapped: Interrupted system call", 1000);
  expect_io_error([&] { MappedFile(path + "y"); }, {"/xy: cannot be mapped: No such file or directory"});
  expect_io_error([&] { MappedFile(folder.path().string()); }, {": cannot be mapped: No such device"});
}

TEST_F(MappedFileTest, GoesOnWhereOpeningIsInterrupted) {
  FaultyCalls faulty({.at = 0, .error = EINTR});
  EXPECT_EQ(MappedFile(put("bytes"), faulty).bytes(), "bytes");
}

}  // namespace
}  // namespace tessera
