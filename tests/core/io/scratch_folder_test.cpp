#include "core/io/scratch_folder.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/support/error.h"
#include "tests/support/message_of.h"
#include "tests/support/scopes.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

TEST(ScratchFolder, IsGoneWithItsContentAlsoAfterAnError) {
  fs::path path;
  try {
    const ScratchFolder folder("tessera-test");
    path = folder.path();
    fs::create_directories(path / "a/b");
    std::ofstream(folder / "a/b/file") << "x";
    EXPECT_TRUE(fs::exists(path / "a/b/file"));
    throw IoError("on the way");
  } catch (const IoError&) {
  }
  EXPECT_NE(path.filename().string().find("tessera-test-"), std::string::npos);
  EXPECT_FALSE(fs::exists(path));
}

TEST(ScratchFolder, SaysWhereItCannotBe) {
  const testing::VariableScope folder("TMPDIR", "/nosuch");
  const std::string message = message_of<IoError>([] { ScratchFolder("x"); });
  EXPECT_TRUE(message.starts_with("no folder for temporary files at /nosuch: ")) << message;
}

TEST(ScratchFolder, StandsInTheFolderThatIsAskedFor) {
  const ScratchFolder parent("tessera-test");
  {
    const ScratchFolder folder("inner", parent.path());
    EXPECT_EQ(folder.path().parent_path(), parent.path());
  }
  EXPECT_TRUE(fs::is_empty(parent.path()));
  EXPECT_EQ(message_of<IoError>([&] { ScratchFolder("inner", parent.path() / "nosuch"); }),
            str("cannot make a temporary folder below ", parent / "nosuch", ": No such file or directory"));
}

}  // namespace
}  // namespace tessera
