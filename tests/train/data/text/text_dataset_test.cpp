#include "train/data/text/text_dataset.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <numeric>
#include <set>

#include "tests/support/message_of.h"
#include "tests/support/scopes.h"
#include "tests/train/data/text/tokenizer_files.h"
#include "train/data/loader.h"
#include "train/data/text/byte_tokenizer.h"
#include "train/data/text/wordpiece_tokenizer.h"

namespace tessera {
namespace {

using Task = TextTask;
using Windows = TextDataset::Windows;

// Limits the process to `room` bytes beyond its present data. Read-only file mappings do not count.
void limit_memory(std::int64_t room) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word && word != "VmData:") {
  }
  std::int64_t kib = 0;
  status >> kib;
  const rlimit limit{static_cast<rlim_t>(kib * 1024 + room), RLIM_INFINITY};
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &limit), 0);
}

class TextWindows : public TokenizerFiles {
 protected:
  // Tokens of the bytes 0, 1, 2, ... modulo 251 (a prime), so that a token shows its position.
  std::shared_ptr<const TokenStore> counted(std::int64_t size) const {
    std::string text;
    for (std::int64_t i = 0; i < size; ++i) text += static_cast<char>(i % 251);
    return tokens_of({write("counted.txt", text)}, *bytes);
  }

  std::shared_ptr<const TextDataset> set(std::int64_t tokens, const TextDataset::Split& split,
                                         const TextDataset::Options& options) const {
    return std::make_shared<const TextDataset>(counted(tokens), bytes, std::vector<std::string>{"counted.txt"}, split, options);
  }
  std::shared_ptr<const TextDataset> next(std::int64_t tokens, Windows windows, std::int64_t sequence = 8) const {
    return set(tokens, {"part", 0, tokens}, {.windows = windows, .sequence = sequence, .seed = 3});
  }
  std::shared_ptr<const TextDataset> masked(std::int64_t tokens, Windows windows, std::int64_t sequence = 8,
                                            std::uint64_t seed = 3) const {
    return set(tokens, {"part", 0, tokens}, {.task = Task::masked_token, .windows = windows, .sequence = sequence, .seed = seed});
  }

  static Batch all(const TextDataset& data, std::optional<std::int64_t> epoch) {
    std::vector<std::int64_t> samples;
    for (std::int64_t i = 0; i < data.size(); ++i) samples.push_back(i);
    const Batch batch = Batch::empty(data.fields(), data.size());
    data.assemble(samples, epoch, batch);
    return batch;
  }
  static std::vector<std::int64_t> numbers(const Batch& batch, const char* name) {
    return batch.at(name).to_vector<std::int64_t>();
  }

  std::shared_ptr<const Tokenizer> bytes = std::make_shared<ByteTokenizer>(true);

 private:
  const testing::VariableScope cache_{"TESSERA_CACHE", ""};
};

TEST_F(TextWindows, EvaluationScoresEveryTokenButTheFirstOnce) {
  for (const std::int64_t tokens : {2, 3, 8, 9, 10, 16, 17, 31, 100}) {
    const auto data = next(tokens, Windows::evaluation);
    const Batch batch = all(*data, {});
    std::vector<std::int64_t> expected, scored, inputs = numbers(batch, "tokens"), targets = numbers(batch, "targets");
    for (std::int64_t i = 1; i < tokens; ++i) expected.push_back(i);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (targets[i] == Masking::kNoTarget) continue;
      scored.push_back(targets[i]);
      EXPECT_EQ(inputs[i], targets[i] - 1);
    }
    EXPECT_EQ(scored, expected) << tokens;
    std::int64_t bytes_scored = 0;
    for (const std::int64_t window : numbers(batch, "bytes")) bytes_scored += window;
    EXPECT_EQ(bytes_scored, tokens - 1);
  }
}

TEST_F(TextWindows, TrainingWindowsAreFullAndMoveWithTheEpoch) {
  for (const std::int64_t tokens : {16, 17, 23, 24, 100}) {
    const auto data = next(tokens, Windows::training);
    EXPECT_EQ(data->size(), tokens / 8 - 1);
    std::set<std::int64_t> offsets;
    for (std::int64_t epoch = 0; epoch < 60; ++epoch) {
      const Batch batch = all(*data, epoch);
      const std::vector<std::int64_t> inputs = numbers(batch, "tokens"), targets = numbers(batch, "targets");
      const std::int64_t offset = inputs[0];
      offsets.insert(offset);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        EXPECT_EQ(inputs[i], offset + static_cast<std::int64_t>(i));
        EXPECT_EQ(targets[i], inputs[i] + 1);
        EXPECT_LT(targets[i], tokens);
      }
      EXPECT_EQ(numbers(batch, "bytes"), std::vector<std::int64_t>(static_cast<std::size_t>(data->size()), 8));
    }
    EXPECT_EQ(offsets.size(), 8u) << "every offset below the sequence";
    EXPECT_EQ(numbers(all(*data, {}), "tokens")[0], 0) << "none without an epoch";
  }
}

TEST_F(TextWindows, OffsetsOfTrainingAreThoseOfTheSeed) {
  const auto offsets = [&](std::uint64_t seed) {
    const auto data = set(100, {"part", 0, 100}, {.windows = Windows::training, .sequence = 8, .seed = seed});
    std::vector<std::int64_t> firsts;
    for (std::int64_t epoch = 0; epoch < 20; ++epoch) firsts.push_back(numbers(all(*data, epoch), "tokens")[0]);
    return firsts;
  };
  EXPECT_EQ(offsets(3), offsets(3));
  EXPECT_NE(offsets(3), offsets(4));
}

TEST_F(TextWindows, ASplitSeesNothingOfTheOthers) {
  const auto data = set(100, {"val", 40, 61}, {.windows = Windows::evaluation, .sequence = 8});
  const std::vector<std::int64_t> targets = numbers(all(*data, {}), "targets");
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(targets.front(), 41);
  EXPECT_EQ(*std::ranges::max_element(targets), 60);
}

TEST_F(TextWindows, MaskedWindowsScoreWhatTheyHide) {
  const auto data = masked(251 * 40, Windows::training, 251);
  std::map<std::string, std::int64_t> counts;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    const Batch batch = all(*data, epoch);
    const std::vector<std::int64_t> inputs = numbers(batch, "tokens"), targets = numbers(batch, "targets");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      ++counts["all"];
      if (targets[i] == Masking::kNoTarget) continue;
      ++counts["hidden"];
      if (inputs[i] == 256) {
        ++counts["mask"];
      } else {
        ++counts[inputs[i] == targets[i] ? "kept" : "random"];
      }
    }
  }
  const auto share = [&](const char* a, const char* b) {
    return static_cast<double>(counts[a]) / static_cast<double>(counts[b]);
  };
  // 195000 draws: three standard deviations are within these tolerances.
  EXPECT_NEAR(share("hidden", "all"), 0.15, 0.003);
  EXPECT_NEAR(share("mask", "hidden"), 0.8, 0.01);
  EXPECT_NEAR(share("random", "hidden"), 0.1, 0.008);
  EXPECT_NEAR(share("kept", "hidden"), 0.1, 0.008);
}

TEST_F(TextWindows, MasksFollowSeedEpochAndSample) {
  const auto data = masked(1000, Windows::training, 50);
  const auto targets = [](const TextDataset& from, std::optional<std::int64_t> epoch) {
    return numbers(all(from, epoch), "targets");
  };
  EXPECT_EQ(targets(*data, 1), targets(*data, 1));
  EXPECT_NE(targets(*data, 1), targets(*data, 2));
  EXPECT_EQ(targets(*data, {}), targets(*data, {}));
  EXPECT_NE(targets(*data, {}), targets(*data, 0));
  EXPECT_NE(targets(*masked(1000, Windows::training, 50, 4), {}), targets(*data, {}));
  const Batch one = Batch::empty(data->fields(), 1);
  data->assemble(std::vector<std::int64_t>{5}, 1, one);
  const std::vector<std::int64_t> whole = targets(*data, 1);
  EXPECT_EQ(numbers(one, "targets"), std::vector<std::int64_t>(whole.begin() + 250, whole.begin() + 300));
}

TEST_F(TextWindows, PaddingIsSeenByNobody) {
  const auto data = masked(19, Windows::evaluation);
  EXPECT_EQ(data->size(), 3);
  const Batch batch = all(*data, {});
  const std::vector<std::uint8_t> seen = batch.at("key_mask").to_vector<std::uint8_t>();
  for (std::size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(seen[i], i < 19 ? 1 : 0) << i;
    if (i < 19) continue;
    EXPECT_EQ(numbers(batch, "targets")[i], Masking::kNoTarget);
    EXPECT_EQ(numbers(batch, "tokens")[i], 0);
  }
  EXPECT_EQ(masked(16, Windows::evaluation)->fields().size(), 2u) << "nothing is padded";
  EXPECT_EQ(masked(19, Windows::training)->fields().size(), 2u);
}

TEST_F(TextWindows, SpecialTokensAreNeverHidden) {
  const auto words = std::make_shared<WordPieceTokenizer>(wordpiece_vocab(), true);
  const std::string file = write("words.txt", "\xe2\x98\x83 the \xe2\x98\x83 tokens \xe2\x98\x83\n");  // snowmen are unknown
  const auto store = tokens_of(std::vector<std::string>(40, file), *words);
  const TextDataset data(store, words, std::vector<std::string>(40, file), {"part", 0, store->tokens().size()},
                         {.task = Task::masked_token, .windows = Windows::evaluation, .sequence = 32});
  std::size_t hidden = 0;
  for (const std::int64_t target : numbers(all(data, {}), "targets")) {
    if (target == Masking::kNoTarget) continue;
    ++hidden;
    EXPECT_FALSE(words->is_special(static_cast<TokenId>(target)));
  }
  EXPECT_GT(hidden, 5u);
}

TEST_F(TextWindows, ThreadsChangeNoByteAndAResumedLoaderGoesOn) {
  LoaderOptions options;
  options.batch = 3;
  options.seed = 3;
  options.prefetch = 3;
  for (const auto& data : {next(211, Windows::training), masked(211, Windows::training)}) {
    options.threads = 0;
    Loader plain(all_of(data), options);
    options.threads = 4;
    Loader threaded(all_of(data), options);
    Loader resumed(all_of(data), options);
    const std::int64_t epoch = plain.batches_per_epoch();
    std::vector<std::vector<std::int64_t>> expected;
    for (std::int64_t i = 0; i < 3 * epoch; ++i) {
      const Batch batch = plain.next();
      expected.push_back(numbers(batch, "tokens"));
      EXPECT_EQ(numbers(threaded.next(), "tokens"), expected.back());
    }
    resumed.seek(1, epoch / 2);
    for (std::int64_t i = epoch + epoch / 2; i < 3 * epoch; ++i) {
      EXPECT_EQ(numbers(resumed.next(), "tokens"), expected[static_cast<std::size_t>(i)]);
    }
  }
}

// The process may use little more memory than it does already, far less than the text, its tokens and their windows need.
TEST_F(TextWindows, AFileLargerThanTheMemoryIsReadToItsEnd) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // sanitisers keep freed memory and add shadow memory
  constexpr std::int64_t kRoom = std::int64_t{4} << 30;
#else
  constexpr std::int64_t kRoom = std::int64_t{64} << 20;
#endif
  constexpr std::int64_t kSize = std::int64_t{96} << 20, kBatch = 64;
  const std::string path = folder / "large.txt";
  {
    std::ofstream file(path);
    const std::string line = str(std::string(1023, 'x'), '\n');
    for (std::int64_t i = 0; i < kSize; i += std::ssize(line)) file << line;
  }
  const auto read = [&] {
    limit_memory(kRoom);
    const TextDataset data(tokens_of({path}, *bytes), bytes, {path}, {"part", 0, kSize},
                           {.windows = Windows::evaluation, .sequence = 64, .seed = 3});
    const Batch batch = Batch::empty(data.fields(), kBatch);
    std::vector<std::int64_t> samples(kBatch);
    for (std::int64_t first = 0; first + kBatch <= data.size(); first += 16 * kBatch) {
      std::iota(samples.begin(), samples.end(), first);
      data.assemble(samples, {}, batch);
    }
    return data.size() == kSize / 64;
  };
  EXPECT_EXIT(::_exit(read() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

TEST_F(TextWindows, TellsWhatItIs) {
  const auto data = next(100, Windows::evaluation);
  EXPECT_EQ(data->name(), "text");
  EXPECT_EQ(data->origin(2), "counted.txt, token 16");
  const TextDescription about = text_description(data->description());
  EXPECT_EQ(about.task, "next-token");
  EXPECT_EQ(data->fields().front().limit, 257);
  EXPECT_EQ(about.tokenizer, Value("bytes"));
  EXPECT_EQ(about.fingerprint, bytes->fingerprint());
  EXPECT_EQ(
      text_description(parse_json(R"({"text": {"task": "t", "tokenizer": "bytes", "fingerprint": "f", "more": 1}})", "m")).task,
      "t")
      << "keys of other versions are passed over";
  const std::set<std::string> fingerprints{
      data->fingerprint(), next(100, Windows::evaluation, 9)->fingerprint(), next(101, Windows::evaluation)->fingerprint(),
      masked(100, Windows::evaluation)->fingerprint(),
      set(100, {"val", 1, 100}, {.windows = Windows::evaluation, .sequence = 8})->fingerprint()};
  EXPECT_EQ(fingerprints.size(), 5u);
  EXPECT_EQ(next(100, Windows::evaluation)->fingerprint(), data->fingerprint());
}

TEST_F(TextWindows, OriginsNameTheFile) {
  const std::vector<std::string> files{write("a.txt", "0123456789"), write("b.txt", "abcdef")};
  const TextDataset data(tokens_of(files, *bytes), bytes, {"a.txt", "b.txt"}, {"part", 0, 16},
                         {.windows = Windows::evaluation, .sequence = 5});
  EXPECT_EQ(data.origin(1), "a.txt, token 5");
  EXPECT_EQ(data.origin(2), "b.txt, token 0");
}

TEST_F(TextWindows, SplitsThatAreTooShortAreRefused) {
  const auto error = [&](std::int64_t tokens, Windows windows) {
    return message_of<ConfigError>([&] { next(tokens, windows); });
  };
  EXPECT_EQ(error(15, Windows::training),
            "counted.txt: too short for its split: part has 15 of 15 tokens; needs 16, twice the sequence");
  EXPECT_EQ(error(1, Windows::evaluation), "counted.txt: too short for its split: part has 1 of 1 tokens; needs 2");
  EXPECT_EQ(error(16, Windows::training), "");
}

TEST_F(TextWindows, MaskedTokenNeedsAMask) {
  const auto plain = std::make_shared<ByteTokenizer>();
  EXPECT_EQ(message_of<ConfigError>([&] {
              TextDataset(counted(50), plain, {"counted.txt"}, {"part", 0, 50}, {.task = Task::masked_token, .sequence = 8});
            }),
            "tokenizer bytes has no mask token, which masked-token needs: [MASK] of wordpiece, <mask> of bpe and sentencepiece");
}

}  // namespace
}  // namespace tessera
