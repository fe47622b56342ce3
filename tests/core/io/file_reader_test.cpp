#include "core/io/file_reader.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/io/vfs.h"
#include "tests/core/io/expect_failure_of.h"
#include "tests/core/io/temporary_folder.h"

namespace tessera {
namespace {

class FileReaderTest : public ::testing::Test {
 protected:
  FileReaderTest() {
    for (int i = 0; i < 10'007; ++i) bytes.push_back(static_cast<char>(i % 251));
    write_file_atomically(real_vfs(), path, bytes);
  }

  // Reads the whole file in parts of 4096 bytes.
  std::string all(SystemCalls& calls) const {
    FileReader reader(path, calls);
    std::string read, part(4096, '\0');
    std::size_t count = part.size();
    while (count == part.size()) {
      count = reader.read(part.data(), part.size());
      read.append(part, 0, count);
    }
    return read;
  }

  TemporaryFolder folder;
  std::string path = (folder.path() / "x").string(), bytes;
};

TEST_F(FileReaderTest, FillsPartsUpToTheLast) {
  FileReader reader(path);
  std::string part(4096, '\0');
  std::vector<std::size_t> counts;
  for (int i = 0; i < 4; ++i) counts.push_back(reader.read(part.data(), part.size()));
  EXPECT_EQ(counts, (std::vector<std::size_t>{4096, 4096, 1815, 0}));
  EXPECT_EQ(all(operating_system()), bytes);
}

TEST_F(FileReaderTest, GoesOnAfterInterruptsAndShortReads) {
  FaultyCalls faultless;
  EXPECT_EQ(all(faultless), bytes);
  ASSERT_GE(faultless.log().size(), 5u);
  for (std::size_t at = 0; at < faultless.log().size(); ++at) {
    for (const int error : {EINTR, kShort}) {
      SCOPED_TRACE(str(faultless.log()[at], ", call ", at, ", error ", error));
      FaultyCalls faulty({.at = static_cast<int>(at), .error = error});
      EXPECT_EQ(all(faulty), bytes);
      EXPECT_EQ(faulty.open_handles(), 0u);
    }
  }
}

TEST_F(FileReaderTest, FailuresNamePathAndReason) {
  const auto read = [&](SystemCalls& calls) { all(calls); };
  expect_failure_of("open", EIO, read, "/x: cannot be opened: Input/output error", 1);
  expect_failure_of("read", EIO, read, "/x: cannot be read: Input/output error", 1);
  expect_failure_of("open", EINTR, read, "/x: cannot be opened: Interrupted system call", 1000);
  expect_failure_of("read", EINTR, read, "/x: cannot be read: Interrupted system call", 1000);
}

TEST_F(FileReaderTest, RefusesWhatIsNoFile) {
  expect_io_error([&] { FileReader((folder.path() / "no").string()); }, {"/no: cannot be opened: No such file or directory"});
  FileReader reader(folder.path().string());
  char byte = 0;
  expect_io_error([&] { reader.read(&byte, 1); }, {folder.path().string() + ": cannot be read: Is a directory"});
}

}  // namespace
}  // namespace tessera
