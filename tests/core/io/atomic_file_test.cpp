#include "core/io/atomic_file.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/core/io/faulty_calls.h"
#include "tests/core/io/temporary_folder.h"

namespace tessera {
namespace {

TEST(WriteAtomically, WritesInParts) {
  const TemporaryFolder folder;
  write_atomically(real_vfs(), folder.path() / "x", [](WritableFile& file) {
    file.write("one ");
    file.write("two");
  });
  EXPECT_EQ(real_vfs().read_file(folder.path() / "x"), "one two");
  EXPECT_EQ(real_vfs().list(folder.path()).size(), 1u);
}

// A caller's exception goes through as it is, whatever happens to the temporary file.
TEST(WriteAtomically, ACallersExceptionLeavesTheOldBytes) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "x";
  write_file_atomically(real_vfs(), path, "the old bytes");
  const auto throws = [](WritableFile& file) {
    file.write("the new");
    throw std::invalid_argument("no further bytes");
  };
  for (const bool removed : {true, false}) {
    class Calls final : public SystemCalls {
     public:
      explicit Calls(bool removes) : removes_(removes) {}
      int unlink(const char* name) override { return removes_ ? SystemCalls::unlink(name) : (errno = EIO, -1); }

     private:
      bool removes_;
    } calls(removed);
    RealVfs vfs(calls);
    EXPECT_THROW(write_atomically(vfs, path, throws), std::invalid_argument);
    EXPECT_EQ(real_vfs().read_file(path), "the old bytes");
    EXPECT_EQ(real_vfs().list(folder.path()).size(), removed ? 1u : 2u);
  }
}

TEST(WriteAtomically, ClosesTheFileOfACallersException) {
  const TemporaryFolder folder;
  FaultyCalls calls;
  RealVfs vfs(calls);
  EXPECT_THROW(write_atomically(vfs, folder.path() / "x", [](WritableFile&) { throw std::invalid_argument("none"); }),
               std::invalid_argument);
  EXPECT_EQ(calls.open_handles(), 0u);
  EXPECT_TRUE(real_vfs().list(folder.path()).empty());
}

}  // namespace
}  // namespace tessera
