#include "core/io/child_process.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

ChildProcess shell(const std::string& commands, const std::vector<std::string>& environment = {}) {
  return ChildProcess({"/bin/sh", "-c", commands}, environment);
}

TEST(ChildProcess, AnswersLinesWithLines) {
  ChildProcess child = shell("while read -r line; do echo \"<$line>\"; done");
  child.write_line("a b");
  EXPECT_EQ(child.read_line(), "<a b>");
  child.write_line("");
  EXPECT_EQ(child.read_line(), "<>");
}

TEST(ChildProcess, EnvironmentIsInheritedReplacedAndRemoved) {
  setenv("TESSERA_TEST_A", "inherited", 1);
  setenv("TESSERA_TEST_AB", "longer name", 1);
  const std::string show = "echo \"${TESSERA_TEST_A-none}, ${TESSERA_TEST_AB-none}\"";
  EXPECT_EQ(shell(show).read_line(), "inherited, longer name");
  EXPECT_EQ(shell(show, {"TESSERA_TEST_A=b=c"}).read_line(), "b=c, longer name");
  EXPECT_EQ(shell(show, {"TESSERA_TEST_A="}).read_line(), ", longer name");
  EXPECT_EQ(shell(show, {"TESSERA_TEST_A"}).read_line(), "none, longer name");
  EXPECT_EQ(shell(show, {"TESSERA_TEST_NOT_SET"}).read_line(), "inherited, longer name");
  unsetenv("TESSERA_TEST_A");
  unsetenv("TESSERA_TEST_AB");
}

TEST(ChildProcess, SaysHowItEnded) {
  const auto ending = [](const std::string& commands) { return message_of<IoError>([&] { shell(commands).read_line(); }); };
  EXPECT_EQ(ending("exit 3"), "child: it ended without an answer (exit status 3)");
  EXPECT_EQ(ending("kill -ABRT $$"), "child: it ended without an answer (signal 6, Aborted)");
  ChildProcess child = shell("exec <&-; echo ready; kill -KILL $$");
  EXPECT_EQ(child.read_line(), "ready");
  for (int i = 0; i < 2; ++i) {  // by the second time the process has been waited for
    EXPECT_EQ(message_of<IoError>([&] { child.write_line("go"); }), "child: it ended before it was told 'go' (signal 9, Killed)");
  }
}

TEST(ChildProcess, FinishesWithoutAFailure) {
  ChildProcess patient = shell("while read -r line; do :; done");
  patient.close_input();
  EXPECT_THROW(patient.write_line("more"), IoError);
  patient.finish();
  ChildProcess failed = shell("exit 3");
  EXPECT_EQ(message_of<IoError>([&] { failed.finish(); }), "child: it failed (exit status 3)");
}

TEST(ChildProcess, AMissingProgramIsAnError) {
  EXPECT_EQ(message_of<IoError>([] { ChildProcess({"/no/such/program"}, {}); }),
            "child: cannot start /no/such/program: No such file or directory");
}

}  // namespace
}  // namespace tessera
