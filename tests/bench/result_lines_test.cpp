#include "bench/result_lines.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "tests/core/io/temporary_folder.h"

namespace tessera::bench {
namespace {

TEST(ResultLines, SayOnWhatTheyWereMeasuredButNotOnWhoseMachine) {
  const Value surroundings = describe_surroundings(2);
  for (const char* key : {"commit", "compiler", "onednn", "processor", "isa", "compute_threads", "date", "omp_wait_policy"}) {
    EXPECT_NE(surroundings.find(key), nullptr) << key;
  }
  EXPECT_EQ(surroundings.find("host"), nullptr);
  EXPECT_EQ(surroundings.at("date").as_string().size(), std::string("2026-01-01T00:00:00Z").size());
}

TEST(ResultLines, AreAppendedOneByOne) {
  const TemporaryFolder folder;
  CommonOptions options{.results = (folder.path() / "new" / "results.jsonl").string(), .command = "some_bench --rounds 3"};
  Value surroundings = Value::map();
  surroundings.set("commit", "abc");
  Value row = Value::map();
  row.set("ratio", to_value(Summary{2, 1, 3}));
  publish(options, surroundings, row);
  publish(options, surroundings, row);
  std::ifstream in(options.results);
  std::string line;
  int lines = 0;
  for (; std::getline(in, line); ++lines) {
    EXPECT_EQ(line, R"({"commit":"abc","command":"some_bench --rounds 3","ratio":{"median":2.0,"p10":1.0,"p90":3.0}})");
  }
  EXPECT_EQ(lines, 2);
}

TEST(ResultLines, AnUnwritableFileIsAnError) {
  EXPECT_THROW(publish({.results = "/dev/full"}, Value::map(), Value::map()), IoError);
}

}  // namespace
}  // namespace tessera::bench
