#include "train/config/yaml.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

Value yaml(std::string_view text) { return parse_yaml(text, "x.yaml"); }

std::string error_of(std::string_view text) {
  return message_of<ConfigError>([&] { yaml(text); });
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) { std::ofstream(path(), std::ios::binary) << content; }
  std::string path() const { return folder_ / "x.yaml"; }

 private:
  TemporaryFolder folder_;
};

TEST(Yaml, ReadsAnExperiment) {
  const Value value = yaml(
      "version: 1   # comment\n"
      "optimizer: {name: sgd, lr: 0.1, nesterov: true, weight_decay: 5.0e-4}\n"
      "schedule: {warmup: 5e}\n"
      "stages:\n"
      "  - {name: pretrain, train: 100e}\n"
      "  - name: admm\n"
      "    admm: {layers: \"layer[23].*.conv*\", ranks: {macs: 0.4}}\n"
      "report:\n");
  EXPECT_EQ(value.at("version"), Value(1));
  EXPECT_EQ(value.at("optimizer").at("lr"), Value(0.1));
  EXPECT_EQ(value.at("optimizer").at("nesterov"), Value(true));
  EXPECT_EQ(value.at("optimizer").at("weight_decay"), Value(5e-4));
  EXPECT_EQ(value.at("schedule").at("warmup"), Value("5e"));
  EXPECT_EQ(value.at("stages").as_list()[1].at("admm").at("layers"), Value("layer[23].*.conv*"));
  EXPECT_TRUE(value.at("report").is_null());
}

TEST(Yaml, MarksKeysAndValues) {
  const Value value = yaml("a: 1\nstages:\n  - name: x\n    train: \"5e\"\n");
  const Value& stages = value.at("stages");
  const Value& stage = stages.as_list()[0];
  EXPECT_EQ(to_string(value.as_map()[1].mark), "x.yaml:2:1");
  EXPECT_EQ(to_string(stages.mark()), "x.yaml:3:3");
  EXPECT_EQ(to_string(stage.mark()), "x.yaml:3:5");
  EXPECT_EQ(to_string(stage.as_map()[1].mark), "x.yaml:4:5");
  EXPECT_EQ(to_string(stage.at("train").mark()), "x.yaml:4:12");
}

TEST(Yaml, QuotesMakeText) {
  const Value value = yaml("{a: '5', b: \"true\", c: 5, d: text}");
  EXPECT_EQ(value.at("a"), Value("5"));
  EXPECT_TRUE(value.at("a").quoted());
  EXPECT_EQ(value.at("b"), Value("true"));
  EXPECT_EQ(value.at("c"), Value(5));
  EXPECT_FALSE(value.at("d").quoted());
  EXPECT_EQ(yaml("|\n  a\n  b\n"), Value("a\nb\n"));
}

TEST(Yaml, KeysAreTexts) {
  const Value value = yaml("{1: a, true: b, 'x y': c, yes: d}");
  EXPECT_EQ(value.at("1"), Value("a"));
  EXPECT_EQ(value.at("true"), Value("b"));
  EXPECT_EQ(value.at("x y"), Value("c"));
  EXPECT_EQ(value.at("yes"), Value("d"));
  EXPECT_EQ(error_of("[a]: 1"), "x.yaml:1:1: a key is text; a list or a block cannot be one");
  EXPECT_EQ(error_of("? {a: 1}\n: 2\n"), "x.yaml:1:3: a key is text; a list or a block cannot be one");
  EXPECT_EQ(error_of("'': 1"), "x.yaml:1:1: a key is empty");
  EXPECT_NE(error_of("~: 1"), "");
  EXPECT_NE(error_of("a: &x k\n*x : 1\n"), "");
  EXPECT_EQ(error_of("[a").find("a key is text"), std::string::npos) << "a bracket that is not closed begins no key";
}

TEST(Yaml, RefusesRepeatedKeysNamingBoth) {
  EXPECT_EQ(error_of("a: 1\nb: {a: 2}\na: 3\n"), "x.yaml:3:1: a: repeated key; first at x.yaml:1:1");
}

TEST(Yaml, RepeatedKeysCarryTheirPath) {
  EXPECT_EQ(error_of("s:\n  - {a: 1}\n  - {b: {c: [x, {d: 1, d: 2}]}}\n"),
            "x.yaml:3:24: s[1].b.c[1].d: repeated key; first at x.yaml:3:18");
}

TEST(Yaml, AReaderOfBlocksMayGoOnAfterFaults) {
  std::vector<ConfigProblem> problems;
  EXPECT_EQ(parse_yaml("a: 1\na: 2\nb: 3\n", "x.yaml", problems), yaml("{a: 1, b: 3}"));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(to_string(problems[0]), "x.yaml:2:1: a: repeated key; first at x.yaml:1:1");
}

TEST(Yaml, CollectsEveryFault) {
  EXPECT_EQ(error_of("a: 010\nb: yes\na: !!int 3\nc: ${TESSERA_TEST_UNSET}\n"),
            "x.yaml:1:4: '010' has a leading zero; write 10 for the number or '010' in quotes for the text\n"
            "x.yaml:2:4: 'yes' is neither text nor a truth value; write true, or quote it: 'yes'\n"
            "x.yaml:3:1: a: repeated key; first at x.yaml:1:1\n"
            "x.yaml:3:4: tags are not read; leave it out\n"
            "x.yaml:4:4: environment variable TESSERA_TEST_UNSET is not set");
}

TEST(Yaml, RefusesTagsAndMergeKeys) {
  for (const char* text : {"!!str 5", "! 5", "! text", "!!map {}", "!x []", "a: !!float 1", "!!null ~"}) {
    EXPECT_NE(error_of(text).find("tags are not read"), std::string::npos) << text;
  }
  EXPECT_EQ(error_of("a: &x {b: 1}\nc:\n  <<: *x\n"), "x.yaml:3:3: merge keys are not read; write the keys out");
  EXPECT_EQ(yaml("'<<': 1").at("<<"), Value(1));
}

TEST(Yaml, ReadsExactlyOneDocument) {
  EXPECT_EQ(yaml("---\na: 1\n...\n").at("a"), Value(1));
  EXPECT_EQ(error_of(""), "x.yaml:1:1: there is no document; the text is empty");
  EXPECT_EQ(error_of("# nothing\n"), "x.yaml:1:1: there is no document; the text is empty");
  EXPECT_NE(error_of("a: 1\n---\nb: 2\n").find("a second document starts here"), std::string::npos);
  EXPECT_NE(error_of("a: 1\n---\n").find("a second document starts here"), std::string::npos);
}

TEST(Yaml, RepeatsAnchorsAndRefusesCycles) {
  const Value value = yaml("a: &x {b: [1]}\nc: *x\n");
  EXPECT_EQ(value.at("a"), value.at("c"));
  EXPECT_EQ(to_string(value.at("c").mark()), "x.yaml:2:4");
  EXPECT_EQ(error_of("a: &x {b: *x}"), "x.yaml:1:11: the alias is inside its own anchor");
  EXPECT_NE(error_of("a: *nowhere").find("x.yaml:1:4: "), std::string::npos);
}

TEST(Yaml, LimitsDepth) {
  EXPECT_EQ(error_of(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_EQ(error_of(std::string(65, '[') + std::string(65, ']')), "x.yaml:1:65: nested deeper than 64");
  for (const std::string unit : {"[", "{a: ", "- ", "? "}) {
    std::string text;
    while (text.size() < 100'000) text += unit;
    EXPECT_NE(error_of(text).find("nested deeper than 64"), std::string::npos) << unit;
  }
  const std::string half = str("a: &x ", std::string(40, '['), std::string(40, ']'), '\n');
  const std::string repeated = str(half, "b: ", std::string(30, '['), "*x", std::string(30, ']'));
  EXPECT_NE(error_of(repeated).find("nested deeper than 64"), std::string::npos);
}

TEST(Yaml, LimitsWhatAliasesRepeat) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string alias = str("*a", i - 1);
    bomb += str('a', i, ": &a", i, " [", alias);
    for (int k = 1; k < 9; ++k) bomb += ", " + alias;
    bomb += "]\n";
  }
  EXPECT_NE(error_of(bomb).find("more than 100000 nodes"), std::string::npos);
  std::string texts = str("a: &a ", std::string(500'000, 'x'), "\nb: [*a");
  for (int i = 0; i < 1000; ++i) texts += ", *a";
  EXPECT_NE(error_of(texts + "]").find("more than 16 MiB of text"), std::string::npos);
}

TEST(Yaml, RefusesBytesThatAreNotUtf8Text) {
  EXPECT_EQ(error_of("a: 1\nb: \xff\n"), "x.yaml:2:4: bytes that are not UTF-8; an experiment file is UTF-8 text");
  EXPECT_EQ(error_of(std::string_view("a: \0b", 5)), "x.yaml:1:4: a zero byte; an experiment file is UTF-8 text");
  EXPECT_EQ(error_of("a: b\x1b[31m"), "x.yaml:1:5: a control character; an experiment file is UTF-8 text");
  EXPECT_EQ(yaml("a:\tb\r\n").at("a"), Value("b"));
  EXPECT_EQ(yaml("\xef\xbb\xbf" "a: \u00e9\n").at("a"), Value("\u00e9"));
  EXPECT_EQ(yaml("\xef\xbb\xbf" "'a': 'b'\n").at("a"), Value("b"));
}

TEST(Yaml, PlacesSyntaxErrors) {
  EXPECT_EQ(error_of("a: [1, 2\nb: 3\n").substr(0, 7), "x.yaml:");
  EXPECT_EQ(error_of("a: 1\n b: 2\n").substr(0, 9), "x.yaml:2:");
  EXPECT_EQ(error_of("b: yes\na: \"x\n").substr(0, 11), "x.yaml:1:4:") << "the fault before the syntax error is kept";
  EXPECT_NE(error_of("a:\n\tb: 1\n").find("is indented with a tab"), std::string::npos);
  EXPECT_EQ(error_of("a: [1\nb: 3\n").find("is indented with a tab"), std::string::npos);
}

TEST(Yaml, RefusesQuotesThatAreNeverClosed) {
  for (const char* text :
       {"a: \"x\n", "a: 'x\n", "a: &b 'x''\n", "- \"x\\\"\n", "\"a: 1\nb: 2\n", "a: 'x\nb: ''\n", "{a: 'b\n"}) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find("the quote that opens here is never closed"), std::string::npos) << text << '\n' << error;
  }
  EXPECT_EQ(error_of("a: 'x"), "x.yaml:1:6: illegal EOF in scalar");
  EXPECT_EQ(yaml("a: &b 'x''y'\nc: \"x\\\"y\"\nd: \"x\n  y\""), yaml("{a: \"x'y\", c: 'x\"y', d: x y}"));
  EXPECT_EQ(error_of("\u00e9: 'a'\nb: \"\u00e9\"\nc: 'd'\n"), "");
}

TEST(Yaml, ExpandsTheEnvironmentInTexts) {
  setenv("TESSERA_TEST_ROOT", "/data/5", 1);
  const Value value = yaml("{a: \"${TESSERA_TEST_ROOT}/x\", b: '$${HOME}', c: $5}");
  EXPECT_EQ(value.at("a"), Value("/data/5/x"));
  EXPECT_EQ(value.at("b"), Value("${HOME}"));
  EXPECT_EQ(value.at("c"), Value("$5"));
  EXPECT_EQ(error_of("a: 1\nb: ${TESSERA_TEST_UNSET}/x\n"), "x.yaml:2:4: environment variable TESSERA_TEST_UNSET is not set");
}

TEST(LoadYaml, NamesTheFile) {
  const TemporaryFile file("a: 010\n");
  try {
    load_yaml(file.path());
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()).rfind(file.path() + ":1:4: '010'", 0), 0u) << error.what();
  }
}

TEST(LoadYaml, ReadsAFile) {
  const TemporaryFile file("a: [1, 2]\n");
  EXPECT_EQ(load_yaml(file.path()).at("a"), Value::list({1, 2}));
}

TEST(LoadYaml, SaysWhyAFileCannotBeRead) {
  const auto error_of_path = [](const std::string& path) { return message_of<IoError>([&] { load_yaml(path); }); };
  EXPECT_EQ(error_of_path("/nonexistent/x.yaml"), "/nonexistent/x.yaml: cannot be read: No such file or directory");
  EXPECT_EQ(error_of_path("/"), "/: cannot be read: Is a directory");
}

TEST(LoadYaml, LimitsTheSize) {
  constexpr std::size_t kMebibyte = std::size_t{1} << 20;
  {
    const TemporaryFile fits(str("a: ", std::string(kMebibyte - 3, 'x')));
    EXPECT_NO_THROW(load_yaml(fits.path()));
  }
  const TemporaryFile large(str("a: ", std::string(kMebibyte - 2, 'x')));
  EXPECT_THROW(load_yaml(large.path()), ConfigError);
}

}  // namespace
}  // namespace tessera
