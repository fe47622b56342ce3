#include "train/data/text/token_cache.h"

#include <gtest/gtest.h>

#include <chrono>

#include "core/support/log.h"
#include "tests/core/io/crash_vfs.h"
#include "tests/core/io/faulty_vfs.h"
#include "tests/support/message_of.h"
#include "tests/support/scopes.h"
#include "tests/train/data/text/tokenizer_files.h"
#include "train/data/text/bpe_tokenizer.h"
#include "train/data/text/byte_tokenizer.h"
#include "train/data/text/text_dataset.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::vector<TokenId> all_tokens(const TokenFile& file) {
  std::vector<TokenId> ids;
  for (std::int64_t i = 0; i < file.size(); ++i) ids.push_back(file.at(i));
  return ids;
}

class TokenCache : public TokenizerFiles {
 protected:
  void SetUp() override {
    set_log_sink([this](LogLevel level, std::string_view message) {
      if (level == LogLevel::warning) warnings.emplace_back(message);
    });
  }
  void TearDown() override { set_log_sink({}); }

  std::vector<std::string> cached() const {
    std::vector<std::string> names;
    if (!fs::exists(folder.path() / "cache")) return names;
    for (const auto& entry : fs::directory_iterator(folder.path() / "cache")) names.push_back(entry.path().string());
    std::ranges::sort(names);
    return names;
  }

  const std::vector<std::string> files{write("a.txt", "The tokens of a text, "), write("b.txt", "and of another.\n")};
  const BpeTokenizer bpe{bpe_vocab(), bpe_merges()};
  const ByteTokenizer bytes;
  std::vector<std::string> warnings;

 private:
  const testing::VariableScope cache_{"TESSERA_CACHE", folder / "cache"};
};

TEST_F(TokenCache, FilesStandOneAfterTheOtherWithTheEndOfATextBetween) {
  const auto store = tokens_of(files, bpe);
  std::vector<TokenId> expected = encoded(bpe, "The tokens of a text, ");
  expected.push_back(*bpe.end_of_text());
  const auto second = static_cast<std::int64_t>(expected.size());
  for (const TokenId id : encoded(bpe, "and of another.\n")) expected.push_back(id);
  EXPECT_EQ(all_tokens(store->tokens()), expected);
  ASSERT_EQ(store->tokens().texts().size(), 2u);
  EXPECT_EQ(store->tokens().texts()[0].first, 0);
  EXPECT_EQ(store->tokens().texts()[0].bytes, 22);
  EXPECT_EQ(store->tokens().texts()[1].first, second);
  EXPECT_EQ(store->tokens().texts()[1].bytes, 16);
  const auto of_bytes = tokens_of(files, bytes);
  EXPECT_EQ(of_bytes->tokens().size(), 38) << "bytes have no end of a text";
}

TEST_F(TokenCache, KeepsTokensUnderWhatTheyDependOn) {
  const auto first = tokens_of(files, bytes);
  ASSERT_EQ(cached().size(), 1u);
  const auto written = fs::last_write_time(cached()[0]);
  EXPECT_EQ(all_tokens(tokens_of(files, bytes)->tokens()), all_tokens(first->tokens()));
  EXPECT_EQ(fs::last_write_time(cached()[0]), written);
  tokens_of(files, bpe);
  EXPECT_EQ(cached().size(), 2u);
  tokens_of({files[1], files[0]}, bytes);
  EXPECT_EQ(cached().size(), 3u);
  write("a.txt", "Other text.");
  EXPECT_EQ(all_tokens(tokens_of(files, bytes)->tokens()), encoded(bytes, "Other text.and of another.\n"));
  EXPECT_EQ(cached().size(), 4u);
  EXPECT_TRUE(warnings.empty());
}

// A newer tokenizer library, which may cut words elsewhere.
class OtherLibrary final : public Tokenizer {
 public:
  std::string_view name() const override { return bytes_.name(); }
  std::int64_t vocabulary() const override { return bytes_.vocabulary(); }
  void encode(std::string_view text, std::vector<TokenId>& ids) const override { bytes_.encode(text, ids); }
  std::size_t cut(std::string_view text) const override { return bytes_.cut(text); }
  std::string decode(std::span<const TokenId> ids) const override { return bytes_.decode(ids); }
  std::int64_t bytes_of(TokenId id) const override { return bytes_.bytes_of(id); }
  bool is_special(TokenId id) const override { return bytes_.is_special(id); }
  std::string fingerprint() const override { return bytes_.fingerprint(); }
  std::string library() const override { return "other 2"; }
  Value config() const override { return bytes_.config(); }

 private:
  ByteTokenizer bytes_;
};

TEST_F(TokenCache, AnotherLibraryMakesThemAnewAndTheirDigestTellsWhetherTheyDiffer) {
  const auto first = tokens_of(files, bytes);
  const auto again = tokens_of(files, OtherLibrary());
  EXPECT_EQ(cached().size(), 2u);
  EXPECT_EQ(again->tokens().digest(), first->tokens().digest());
  const auto others = tokens_of({files[1], files[0]}, bytes);
  EXPECT_NE(others->tokens().digest(), first->tokens().digest());
  const auto fingerprint = [&](const std::shared_ptr<const TokenStore>& store) {
    return TextDataset(store, std::make_shared<ByteTokenizer>(), files, {"train", 0, 38}, {.sequence = 8}).fingerprint();
  };
  EXPECT_EQ(fingerprint(again), fingerprint(first)) << "a run goes on with equal tokens";
  EXPECT_NE(fingerprint(others), fingerprint(first));
  EXPECT_TRUE(bpe.library().starts_with("utf8proc ")) << bpe.library();
}

TEST_F(TokenCache, DamagedOnesAreMadeAgainWithAWarning) {
  const std::vector<TokenId> expected = all_tokens(tokens_of(files, bpe)->tokens());
  const std::string path = cached().at(0);
  const std::string whole = real_vfs().read_file(path);
  std::vector<std::string> damaged{whole.substr(0, whole.size() - 1), whole.substr(0, 70), "", whole + "x"};
  for (const std::size_t at : {std::size_t{0}, std::size_t{17}, std::size_t{21}, std::size_t{40}, std::size_t{64},
                               whole.size() - 50, whole.size() - 1}) {
    damaged.push_back(whole);
    damaged.back()[at] ^= 1;
  }
  for (const std::string& bytes_left : damaged) {
    warnings.clear();
    write_file_atomically(real_vfs(), path, bytes_left);
    EXPECT_EQ(all_tokens(tokens_of(files, bpe)->tokens()), expected);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_TRUE(warnings[0].find(path) != std::string::npos && warnings[0].ends_with("the text is tokenised again"))
        << warnings[0];
    EXPECT_EQ(real_vfs().read_file(path), whole);
  }
}

TEST_F(TokenCache, AnotherKeysFileIsRefused) {
  const auto store = tokens_of(files, bytes);
  const std::string other(32, '0');
  EXPECT_EQ(message_of<IoError>([&] { TokenStore(cached()[0], other); }), cached()[0] + ": holds the tokens of other files");
}

TEST_F(TokenCache, WithoutAFolderTokensLastAsLongAsTheirStore) {
  const testing::VariableScope none("TESSERA_CACHE", "");
  const auto store = tokens_of(files, bytes);
  EXPECT_EQ(store->tokens().size(), 38);
  const testing::VariableScope in_the_way("TESSERA_CACHE", write("file", "in the way"));
  EXPECT_EQ(tokens_of(files, bytes)->tokens().size(), 38);
  EXPECT_TRUE(cached().empty());
}

TEST_F(TokenCache, LeftoversOfKilledProcessesAreRemoved) {
  tokens_of(files, bytes);
  const fs::path path = cached().at(0);
  fs::remove(path);
  const auto leave = [&](int process, std::chrono::hours age) {
    const fs::path left = path.parent_path() / str(".", path.filename().string(), ".tmp-", process, "-0");
    write_file_atomically(real_vfs(), left, "begun");
    fs::last_write_time(left, fs::file_time_type::clock::now() - age);
    return left.string();
  };
  // Larger than any process number of this machine, as the number of a process of another machine may be.
  const std::string writing = leave(4'000'000, std::chrono::hours(23)), left = leave(4'000'001, std::chrono::hours(25));
  tokens_of(files, bytes);
  EXPECT_EQ(cached(), (std::vector<std::string>{writing, path.string()}));
  EXPECT_FALSE(fs::exists(left));
  leave(4'000'001, std::chrono::hours(25));
  tokens_of(files, bytes);
  EXPECT_FALSE(fs::exists(left)) << "beside a whole file too";
}

TEST_F(TokenCache, AFileThatChangesMeanwhileIsRefused) {
  const std::string path = folder / "tokens";
  const std::string key = token_key({files[0]}, bytes);
  EXPECT_EQ(message_of<IoError>([&] { write_tokens(real_vfs(), path, key, {files[1]}, bytes); }),
            files[1] + ": changed while it was tokenised");
  EXPECT_FALSE(fs::exists(path));
}

// Cuts the power at every operation. Afterwards the token file is either missing or complete.
TEST_F(TokenCache, SurvivesACrashAtEveryOperation) {
  CrashVfs disk;
  disk.make_directory("/cache");
  disk.sync_directory("/");
  const std::string path = "/cache/tokens";
  const std::string key = token_key(files, bpe);
  std::uint64_t operations = 0;
  std::size_t whole = 0;
  const auto look = [&](const std::string& operation) {
    each_crash(disk, ++operations, [&](const std::string& name, CrashVfs& left) {
      SCOPED_TRACE(str("before ", operation, ", ", name));
      if (!left.exists(path)) return;
      ++whole;
      const std::string bytes_left = left.read_file(path);
      EXPECT_EQ(TokenFile(bytes_left, key, path).texts().size(), 2u);
    });
  };
  disk.before_change = look;
  write_tokens(disk, path, key, files, bpe, {.usual = 8});
  disk.before_change = nullptr;
  look("none");
  EXPECT_GE(operations, 10u);
  EXPECT_GE(whole, 1u);
}

TEST_F(TokenCache, AFailureAtAnyOperationLeavesNothing) {
  const std::string path = folder / "tokens";
  const std::string key = token_key(files, bpe);
  FaultyVfs sound;
  write_tokens(sound, path, key, files, bpe, {.usual = 8});
  const std::string whole = real_vfs().read_file(path);
  fs::remove(path);
  for (int at = 0; at < sound.operations(); ++at) {
    FaultyVfs faulty({.at = at});
    EXPECT_THROW(write_tokens(faulty, path, key, files, bpe, {.usual = 8}), IoError) << at;
    EXPECT_TRUE(!fs::exists(path) || real_vfs().read_file(path) == whole) << at;
    fs::remove(path);
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      EXPECT_EQ(entry.path().filename().string().find(".tmp-"), std::string::npos) << "after operation " << at;
    }
  }
}

TEST_F(TokenCache, WideIdsTakeFourBytes) {
  const std::string path = folder / "wide";
  const std::string key(32, 'k');
  const std::vector<TokenId> ids{0, 65535, 65536, 1'000'000};
  const auto file = real_vfs().create(path);
  TokenFileWriter writer(*file, key, 1'000'001);
  writer.begin_text();
  writer.add(ids, 9);
  writer.finish();
  file->close();
  EXPECT_EQ(all_tokens(TokenStore(path, key).tokens()), ids);
}

}  // namespace
}  // namespace tessera
