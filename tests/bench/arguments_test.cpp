#include "bench/arguments.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

using Words = std::vector<std::string_view>;

struct Program {
  CommonOptions options{.rounds = 7, .results = "somewhere"};
  Arguments arguments{"some_bench", "times things"};

  Program() { add_common(arguments, options); }
  std::string error_of(const Words& words) {
    return message_of<ConfigError>([&] { arguments.read(words); });
  }
};

TEST(Arguments, KeepDefaultsAndTakeWhatIsGiven) {
  Program program;
  program.arguments.read(Words{"--threads", "3", "--dry-run", "--results", "there"});
  EXPECT_EQ(program.options.rounds, 7);
  EXPECT_EQ(program.options.threads, 3);
  EXPECT_TRUE(program.options.dry_run);
  EXPECT_EQ(program.options.results, "there");
}

TEST(Arguments, NameTheProgramTheOptionAndTheRule) {
  Program program;
  for (const char* word : {"0", "-1", "two", "2x", "1e3", "", "99999999999999999999"}) {
    EXPECT_EQ(program.error_of({"--rounds", word}),
              str("some_bench: --rounds is '", word, "'; needs a whole number of at least 1"));
  }
  EXPECT_EQ(program.error_of({"--rounds"}), "some_bench: --rounds needs a value");
  EXPECT_EQ(program.error_of({"--dry-run", "--round", "3"}), "some_bench: unknown option '--round'; --help lists them");
}

TEST(Arguments, UsageListsEveryOptionWithItsDefault) {
  const std::string usage = Program().arguments.usage();
  EXPECT_TRUE(usage.starts_with("some_bench: times things\n"));
  for (const char* part : {"--rounds N", "(7)", "--threads N", "(2)", "--results TEXT", "--dry-run "}) {
    EXPECT_NE(usage.find(part), std::string::npos) << part << " is not in\n" << usage;
  }
}

TEST(RunBenchmark, ExitCodeSaysWhoseFaultItWas) {
  Program program;
  int measured = 0;
  EXPECT_EQ(run_benchmark(program.arguments, Words{}, [&] { ++measured; }), 0);
  EXPECT_EQ(run_benchmark(program.arguments, Words{"--help"}, [&] { ++measured; }), 0);
  EXPECT_EQ(run_benchmark(program.arguments, Words{"--wrong"}, [&] { ++measured; }), 2);
  EXPECT_EQ(measured, 1);
  EXPECT_EQ(run_benchmark(program.arguments, Words{}, [] { throw InternalError("rival crippled"); }), 1);
  EXPECT_EQ(run_benchmark(program.arguments, Words{}, [] { throw ConfigError("no torch"); }), 2);
}

}  // namespace
}  // namespace tessera::bench
