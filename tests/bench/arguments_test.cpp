#include "bench/arguments.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "core/support/log.h"
#include "tests/support/message_of.h"
#include "tests/support/scopes.h"

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

TEST(Arguments, CommandIsTheProgramAndItsWords) {
  Program program;
  program.arguments.read(Words{"--threads", "3", "--dry-run"});
  EXPECT_EQ(program.options.command, "some_bench --threads 3 --dry-run");
  program.arguments.read(Words{"--results", "/a/machine's/own/lines.jsonl"});
  EXPECT_EQ(program.options.command, "some_bench --results lines.jsonl");
  EXPECT_EQ(program.options.results, "/a/machine's/own/lines.jsonl");
}

TEST(Arguments, NameTheProgramTheOptionAndTheRule) {
  Program program;
  for (const char* word : {"0", "-1", "two", "2x", "1e3", "", "65537", "99999999999999999999"}) {
    EXPECT_EQ(program.error_of({"--rounds", word}),
              str("some_bench: --rounds is '", word, "'; needs a whole number from 1 to 65536"));
  }
  EXPECT_EQ(program.error_of({"--threads", "1025"}), "some_bench: --threads is '1025'; needs a whole number from 1 to 1024");
  EXPECT_EQ(program.error_of({"--rounds"}), "some_bench: --rounds needs a value");
  EXPECT_EQ(program.error_of({"--dry-run", "--round", "3"}), "some_bench: unknown option '--round'; --help lists them");
}

TEST(Arguments, RefuseWhatWasGivenAndHasNoEffect) {
  Program program;
  constexpr std::string_view kIdle[]{"--threads", "--dry-run"};
  program.arguments.read(Words{"--rounds", "3"});
  EXPECT_NO_THROW(program.arguments.refuse(kIdle, "alone"));
  program.arguments.read(Words{"--dry-run"});
  EXPECT_EQ(message_of<ConfigError>([&] { program.arguments.refuse(kIdle, "alone"); }),
            "some_bench: --dry-run has no effect alone; leave it out");
}

TEST(Arguments, APythonWithoutADefaultMayBeLeftOut) {
  TorchOptions torch{.script = "torch.py"}, optional{.python = {}, .script = "torch.py"};
  Arguments arguments("some_bench", "times things"), others("other_bench", "times things");
  add_torch(arguments, torch);
  EXPECT_NE(arguments.usage().find("interpreter that has torch (/usr/bin/python3)\n"), std::string::npos);
  add_torch(others, optional, "torch and more");
  EXPECT_NE(others.usage().find("interpreter that has torch and more; without it its rows are left out\n"), std::string::npos);
  others.read(Words{"--python", "python", "--sweep-runs", "2"});
  EXPECT_EQ(optional.python, "python");
  EXPECT_EQ(optional.sweep_runs, 2);
}

TEST(Arguments, UsageListsEveryOptionWithItsDefault) {
  const std::string usage = Program().arguments.usage();
  EXPECT_TRUE(usage.starts_with("some_bench: times things\n"));
  for (const char* part : {"--rounds N", "(7)", "--threads N", "(2)", "--results TEXT", "--dry-run "}) {
    EXPECT_NE(usage.find(part), std::string::npos) << part << " is not in\n" << usage;
  }
}

TEST(Arguments, UsageShowsNoDefaultThatCannotBeGiven) {
  std::int64_t batch = 0;
  const std::string usage = Arguments("some_bench", "times things").count("--batch", batch, "only this batch").usage();
  EXPECT_EQ(usage, "some_bench: times things\n  --batch N  only this batch\n");
}

TEST(RunBenchmark, RefusesALimitedInstructionSet) {
  Program program;
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "TESSERA_ISA"}) {
    int measured = 0;
    const testing::VariableScope limited(name, "avx2");
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(run_benchmark(program.arguments, Words{}, [&] { ++measured; }), 2);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              str(name, " is 'avx2': under a limited instruction set a comparison is void; unset it\n"));
    const testing::VariableScope empty(name, "");
    EXPECT_EQ(run_benchmark(program.arguments, Words{}, [&] { ++measured; }), 0) << name;
    EXPECT_EQ(measured, 1) << name;
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

TEST(RunBenchmark, PrintsWarningsAndNoLesserMessages) {
  Program program;
  const std::int64_t before = warnings_printed();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_benchmark(program.arguments, Words{},
                          [] {
                            log(LogLevel::info, "a choice");
                            log_warning("threads waited");
                          }),
            0);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "some_bench: threads waited\n");
  EXPECT_EQ(warnings_printed(), before + 1);
  set_log_sink({});
}

}  // namespace
}  // namespace tessera::bench
