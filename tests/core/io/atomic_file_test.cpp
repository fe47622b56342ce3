#include "core/io/atomic_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "core/support/error.h"
#include "tests/core/io/faulty_calls.h"
#include "tests/core/io/forwarding_vfs.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"

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

// A caller's exception passes through unchanged, whatever happens to the temporary file.
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

// A file with the temporary name may belong to another process.
TEST(WriteAtomically, WhatItCouldNotCreateItDoesNotRemove) {
  class NoRoom final : public ForwardingVfs {
   public:
    NoRoom() : ForwardingVfs(real_vfs()) {}
    std::unique_ptr<WritableFile> create(const Path& path) override {
      names.push_back(path.filename().string());
      throw IoError("no room");
    }
    void remove(const Path&) override { ADD_FAILURE() << "removed"; }
    std::vector<std::string> names;
  } vfs;
  const TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) EXPECT_THROW(write_file_atomically(vfs, folder.path() / "x", "bytes"), IoError);
  ASSERT_EQ(vfs.names.size(), 2u);
  EXPECT_TRUE(vfs.names[0].starts_with(".x.tmp-")) << vfs.names[0];
  EXPECT_NE(vfs.names[0], vfs.names[1]);
}

TEST(RemoveUnfinished, OfAllFilesOfAnExtension) {
  const TemporaryFolder folder;
  const auto leave = [&](const std::string& name, std::chrono::hours age) {
    write_file_atomically(real_vfs(), folder.path() / name, "half");
    std::filesystem::last_write_time(folder.path() / name, std::filesystem::file_time_type::clock::now() - age);
  };
  leave(".a.tokens.tmp-1-0", std::chrono::hours(25));
  leave(".b.tokens.tmp-2-0", std::chrono::hours(23));
  leave(".c.other.tmp-3-0", std::chrono::hours(25));
  leave("d.tokens", std::chrono::hours(25));
  remove_all_unfinished(folder.path(), ".tokens");
  std::vector<std::string> left;
  for (const DirectoryEntry& entry : real_vfs().list(folder.path())) left.push_back(entry.name);
  std::ranges::sort(left);
  EXPECT_EQ(left, (std::vector<std::string>{".b.tokens.tmp-2-0", ".c.other.tmp-3-0", "d.tokens"}));
}

namespace fs = std::filesystem;

class WriteThroughALink : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"kept", "links"}) fs::create_directory(at(name));
  }
  fs::path at(const std::string& name) const { return folder_.path() / name; }
  void link(const std::string& name, const fs::path& target) const { fs::create_symlink(target, at(name)); }
  std::size_t entries_of(const std::string& name) const { return real_vfs().list(at(name)).size(); }

  TemporaryFolder folder_;
};

TEST_F(WriteThroughALink, ReplacesTheFileThatItLeadsTo) {
  write_file_atomically(real_vfs(), at("kept/x"), "old");
  link("links/near", "../kept/x");
  link("links/far", "near");
  link("links/whole", at("links/far"));
  for (const char* name : {"links/near", "links/far", "links/whole"}) {
    write_file_atomically(real_vfs(), at(name), name);
    EXPECT_EQ(real_vfs().read_file(at("kept/x")), name);
    EXPECT_TRUE(fs::is_symlink(at(name))) << name;
    EXPECT_FALSE(fs::is_symlink(at("kept/x")));
  }
  EXPECT_EQ(entries_of("kept"), 1u) << "the temporary file is gone";
  EXPECT_EQ(entries_of("links"), 3u);
}

TEST_F(WriteThroughALink, MakesTheFileWhereThereIsNone) {
  link("links/x", "../kept/new");
  write_file_atomically(real_vfs(), at("links/x"), "bytes");
  EXPECT_EQ(real_vfs().read_file(at("kept/new")), "bytes");
  EXPECT_TRUE(fs::is_symlink(at("links/x")));
}

TEST_F(WriteThroughALink, RemovesWhatWasLeftBesideTheFile) {
  link("links/x", "../kept/y");
  const fs::path leftover = at("kept/.y.tmp-1-0");
  write_file_atomically(real_vfs(), leftover, "half");
  fs::last_write_time(leftover, fs::file_time_type::clock::now() - std::chrono::hours(25));
  remove_unfinished(at("links/x"));
  EXPECT_EQ(entries_of("kept"), 0u);
}

TEST_F(WriteThroughALink, WithoutAnEndIsRefused) {
  link("links/x", "y");
  link("links/y", "x");
  EXPECT_EQ(message_of<IoError>([&] { write_file_atomically(real_vfs(), at("links/x"), "bytes"); }),
            at("links/x").string() + ": is a symbolic link that leads to no end");
  link("links/lost", "../none/x");
  EXPECT_NE(message_of<IoError>([&] { write_file_atomically(real_vfs(), at("links/lost"), "bytes"); }).find("No such file"),
            std::string::npos);
  EXPECT_EQ(entries_of("links"), 3u);
}

}  // namespace
}  // namespace tessera
