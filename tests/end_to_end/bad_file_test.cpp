// Invalid experiment files given to the program: exit code 2 and a line per fault with its place, however strange the bytes are.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/support/error.h"
#include "tests/end_to_end/program.h"

namespace tessera::testing {
namespace {

const std::string kGood = "version: 1\nname: x\ndata: {name: glyphs}\nmodel: {name: lenet5}\nstages: [{name: a, train: 1e}]\n";

struct BadFile {
  std::string name;
  std::string bytes;
  std::vector<std::string> lines;  // beginning of each message, after the file's name
};

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string alias_bomb() {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string alias = str("*a", i - 1);
    bomb += str('a', i, ": &a", i, " [", alias, repeated(", " + alias, 8), "]\n");
  }
  return bomb;
}

class BadFiles : public ::testing::Test {
 protected:
  void expect_lines(const BadFile& file) const {
    const std::string path = folder_ / "bad.yaml";
    write_bytes(path, file.bytes);
    const Outcome outcome = run_program({"validate", path});
    EXPECT_EQ(outcome.exit_code, 2) << file.name;
    std::size_t begin = 0;
    for (const std::string& line : file.lines) {
      EXPECT_EQ(outcome.output.substr(begin, path.size() + line.size()), path + line) << file.name << ":\n" << outcome.output;
      begin = std::min(outcome.output.find('\n', begin), outcome.output.size() - 1) + 1;
    }
    EXPECT_EQ(begin, outcome.output.size()) << file.name << " has more lines:\n" << outcome.output;
  }
  void expect_all(const std::vector<BadFile>& files) const {
    for (const BadFile& file : files) expect_lines(file);
  }

  TemporaryFolder folder_;
};

TEST_F(BadFiles, OfOtherBytesThanText) {
  expect_all({{"empty", "", {":1:1: there is no document; the text is empty"}},
              {"a comment alone", "# x\n", {":1:1: there is no document"}},
              {"another encoding", kGood + "seed: \"\xff\"\n", {":6:8: bytes that are not UTF-8"}},
              {"UTF-16", std::string("\xff\xfev\0e\0", 6), {":1:1: bytes that are not UTF-8"}},
              {"a zero byte", kGood + "seed: " + std::string(1, '\0') + "\n", {":6:7: a zero byte"}},
              {"a terminal's escape", kGood + "seed: \x1b[31m\n", {":6:7: a control character"}},
              {"too large", kGood + "# " + std::string(1 << 20, 'x'), {": is larger than 1 MiB"}}});
}

TEST_F(BadFiles, OfAnotherShapeThanOneBlock) {
  expect_all(
      {{"a number", "42\n", {":1:1: expected a block, found 42"}},
       {"a list", "- a\n", {":1:1: expected a block, found a list"}},
       {"a text", "version:1\n", {":1:1: expected a block, found text 'version:1'"}},
       {"two documents", kGood + "---\n" + kGood, {":6:1: a second document starts here"}},
       {"an indenting tab", "version: 1\ndata:\n\tname: glyphs\n", {":3:6: illegal map value; the line is indented with a tab"}},
       {"an open bracket", kGood + "seed: [1, 2\n", {":6:7: the bracket that opens here is never closed"}},
       {"an open brace", kGood + "seed: {a: 1\nname: x\n", {":6:7: the bracket that opens here is never closed"}},
       {"an open quote", kGood + "precision: \"f32\n", {":6:12: the quote that opens here is never closed"}},
       {"an unknown escape", kGood + "precision: \"\\q\"\n", {":6:15: unknown escape character: q"}}});
}

TEST_F(BadFiles, ThatWouldExhaustAReader) {
  constexpr int kMany = 100'000;
  // yaml-cpp reads an unclosed bracket as a key, which puts a block around each.
  expect_all({{"[", repeated("[", kMany), {":1:33: nested deeper than 64"}},
              {"{a: ", repeated("{a: ", kMany), {":1:253: nested deeper than 64"}},
              {"- ", repeated("- ", kMany), {":1:129: nested deeper than 64"}},
              {"? ", repeated("? ", kMany), {":1:129: nested deeper than 64"}},
              {"an alias bomb", alias_bomb(), {":6:10: more than 100000 nodes, counting what aliases repeat"}},
              {"a block in itself", kGood + "loss: &x {label_smoothing: *x}\n", {":6:28: the alias is inside its own anchor"}},
              {"a list in itself", kGood + "loss: &x [*x]\n", {":6:11: the alias is inside its own anchor"}}});
}

TEST_F(BadFiles, WithKeysOfTwoReadings) {
  expect_all({{"repeated", kGood + "name: y\n", {":6:1: name: repeated key; first at "}},
              {"repeated in a block",
               kGood + "loss: {label_smoothing: 0, label_smoothing: 0}\n",
               {":6:28: loss.label_smoothing: repeated key; first at "}},
              {"repeated deeper",
               kGood + "report: {latency: {batch: [1], batch: [2]}}\n",
               {":6:32: report.latency.batch: repeated key; first at "}},
              {"repeated in an item",
               "version: 1\nname: x\ndata: {name: glyphs}\nmodel: {name: mlp}\nstages:\n  - {name: a, name: b, train: 1e}\n",
               {":6:15: stages[0].name: repeated key; first at "}},
              {"merged", kGood + "ema: &x {decay: 0.5}\nloss: {<<: *x}\n", {":7:8: merge keys are not read"}},
              {"a list", kGood + "[a]: 1\n", {":6:1: a key is text; a list or a block cannot be one"}},
              {"none", kGood + ": 1\n", {":6:1: a key is missing before ':'"}}});
}

TEST_F(BadFiles, WithValuesOfTwoReadings) {
  const auto seed = [](const std::string& value, const std::string& line) {
    return BadFile{value, kGood + "seed: " + value + "\n", {":6:7: " + line}};
  };
  expect_all(
      {seed("!!int 3", "tags are not read"), seed("'3'", "seed: expected an integer, found text '3'; a number takes no quotes"),
       seed("'3 '", "seed: expected an integer, found text '3 '"), seed("010", "'010' has a leading zero; write 10"),
       seed("0x10", "'0x10' is not decimal"), seed("0o10", "'0o10' is not decimal"),
       seed("1_000", "seed: expected an integer, found text '1_000'"), seed("yes", "'yes' is neither text nor a truth value"),
       seed("True", "'True' is neither text nor a truth value"), seed(".inf", "'.inf' is not a finite number"),
       seed("-.NaN", "'-.NaN' is not a finite number"), seed("1e999", "1e999 does not fit in a double"),
       seed("99999999999999999999", "99999999999999999999 does not fit in a 64-bit integer"),
       seed("3.0", "seed: expected an integer, found 3.0"), seed("~", "seed: expected an integer, found null"),
       seed("${TESSERA_TEST_UNSET}", "environment variable TESSERA_TEST_UNSET is not set"),
       seed("${TESSERA_TEST_UNSET", "'${' without a variable name and '}'"), seed("*x", "the referenced anchor is not defined")});
}

TEST_F(BadFiles, OrNoFiles) {
  for (const auto& [path, line] : std::vector<std::pair<std::string, std::string>>{
           {folder_ / "none.yaml", "No such file or directory"}, {folder_.path().string(), "Is a directory"}}) {
    const Outcome outcome = run_program({"validate", path});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.output, path + ": cannot be read: " + line + "\n");
  }
}

TEST_F(BadFiles, ButNotForEditorsOfOtherSystems) {
  std::string windows;
  for (const char c : kGood) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  for (const std::string& bytes : {"\xef\xbb\xbf" + kGood, windows, kGood + "seed: 3  \t\n"}) {
    write_bytes(folder_ / "good.yaml", bytes);
    EXPECT_EQ(run_program({"validate", folder_ / "good.yaml", "data.count=100", "data.test_count=10", "data.batch=10"}).exit_code,
              0);
  }
}

TEST_F(BadFiles, OrMalformedOverrides) {
  const std::string path = folder_ / "good.yaml";
  write_bytes(path, kGood);
  for (const auto& [override, message] :
       std::vector<std::pair<std::string, std::string>>{{"seed", "write block.key=value to set a key or ~block.key to drop one"},
                                                        {"=3", "a part of the path is empty"},
                                                        {"data..count=3", "a part of the path is empty"},
                                                        {"seed=", "there is no value after '='"},
                                                        {"stages[0=1", "an index is written [0]"},
                                                        {"stages[-1].train=1e", "an index is written [0]"},
                                                        {"stages[7].train=1e", "index 7 is out of range"},
                                                        {"stages[99999999999999999999].train=1e", "an index is written [0]"},
                                                        {"stages.0.train=1e", "stages is a list, not a block"},
                                                        {"~seed", "there is no seed"},
                                                        {"~data.nmae", "there is no data.nmae; did you mean 'name'?"}}) {
    const Outcome outcome = run_program({"validate", path, override});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.output.find("command line: " + override + ": " + message), 0u) << outcome.output;
  }
  for (const std::string value : {"[", "{a", "\"", "1\n--- 2"}) {
    const Outcome outcome = run_program({"validate", path, "seed=" + value});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.output.find("command line: seed"), 0u) << outcome.output;
    EXPECT_EQ(outcome.output.find('\n') + 1, outcome.output.size()) << outcome.output;
  }
}

}  // namespace
}  // namespace tessera::testing
