#include "train/config/overrides.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/support/message_of.h"
#include "train/config/yaml.h"

namespace tessera {
namespace {

Value yaml(std::string_view text) { return parse_yaml(text, "x.yaml"); }

Value experiment() {
  return yaml("optimizer: {name: sgd, lr: 0.1}\nstages:\n  - {name: a, train: 1e}\n  - {name: b, admm: {rho: 1}}\nempty:\n");
}

Value overridden(std::string_view text) {
  Value value = experiment();
  apply_override(value, text);
  return value;
}

std::string error_of(std::string_view text) {
  return message_of<ConfigError>([&] { overridden(text); });
}

TEST(Override, SetsKeysAtAnyDepth) {
  EXPECT_EQ(overridden("optimizer.lr=0.05").at("optimizer").at("lr"), Value(0.05));
  EXPECT_EQ(overridden("stages[0].train=2e").at("stages").as_list()[0].at("train"), Value("2e"));
  EXPECT_EQ(overridden("stages[1]={name: c}").at("stages").as_list()[1], yaml("{name: c}"));
  EXPECT_EQ(overridden("seed=3").at("seed"), Value(3));
  EXPECT_EQ(overridden("a='5'").at("a"), Value("5"));
  EXPECT_EQ(overridden("a=x=y").at("a"), Value("x=y"));
  EXPECT_EQ(overridden("a=null").at("a"), Value());
}

TEST(Override, KeepsWhatItDoesNotName) {
  const Value value = overridden("optimizer.lr=0.05");
  EXPECT_EQ(value.at("optimizer").at("name"), Value("sgd"));
  EXPECT_EQ(value.at("stages"), experiment().at("stages"));
}

TEST(Override, MakesBlocksOnTheWay) {
  EXPECT_EQ(overridden("report.latency.batch=[1, 128]").at("report"), yaml("{latency: {batch: [1, 128]}}"));
  EXPECT_EQ(overridden("empty.a=1").at("empty"), yaml("{a: 1}"));
}

TEST(Override, MarksValuesAsCommandLine) {
  const Value value = overridden("report={a: [1]}");
  const Value& report = value.at("report");
  EXPECT_EQ(to_string(report.mark()), "command line");
  EXPECT_EQ(to_string(report.as_map()[0].mark), "command line");
  EXPECT_EQ(to_string(report.at("a").as_list()[0].mark()), "command line");
}

TEST(Override, DropsKeysAndItems) {
  EXPECT_EQ(overridden("~optimizer.lr").at("optimizer"), yaml("{name: sgd}"));
  EXPECT_EQ(overridden("~optimizer").find("optimizer"), nullptr);
  EXPECT_EQ(overridden("~stages[0]").at("stages").as_list().size(), 1u);
  EXPECT_EQ(overridden("~stages[1].admm").at("stages").as_list()[1], yaml("{name: b}"));
}

TEST(Override, RefusesToDropWhatIsAbsent) {
  EXPECT_EQ(error_of("~optimizer.rl"), "command line: ~optimizer.rl: there is no optimizer.rl; did you mean 'lr'?");
  EXPECT_EQ(error_of("~stages[2]"), "command line: ~stages[2]: index 2 is out of range; stages has 2 items");
}

TEST(Override, RefusesWrongPaths) {
  EXPECT_EQ(error_of("stages[2].train=1e"), "command line: stages[2].train=1e: index 2 is out of range; stages has 2 items");
  EXPECT_EQ(error_of("optimizer[0]=1"), "command line: optimizer[0]=1: optimizer is a block, not a list");
  EXPECT_EQ(error_of("stages.train=1e"), "command line: stages.train=1e: stages is a list, not a block");
  EXPECT_EQ(error_of("optimizer.lr.x=1"), "command line: optimizer.lr.x=1: optimizer.lr is a number, not a block");
  EXPECT_EQ(error_of("seed"), "command line: seed: write block.key=value to set a key or ~block.key to drop one");
  for (const char* text : {"=1", ".a=1", "a.=1", "a..b=1", "[0]=1", "stages[]=1", "stages[x]=1", "stages[0=1", "stages[0]x=1",
                           "stages[-1]=1", "~", "~a.", "a=", "a= "}) {
    EXPECT_NE(error_of(text), "") << text;
  }
}

TEST(Override, RefusesBrokenValues) {
  EXPECT_EQ(error_of("seed=010").substr(0, 24), "command line: seed:1:1: ") << error_of("seed=010");
  EXPECT_NE(error_of("seed=[1"), "");
}

TEST(Merge, OverridesKeyByKey) {
  EXPECT_EQ(merge(yaml("{a: 1, b: {c: 2, d: 3}}"), yaml("{b: {c: 4}, e: 5}")), yaml("{a: 1, b: {c: 4, d: 3}, e: 5}"));
}

TEST(Merge, ReplacesListsAndOtherKinds) {
  EXPECT_EQ(merge(yaml("{a: [1, 2], b: {c: 1}}"), yaml("{a: [3], b: 4}")), yaml("{a: [3], b: 4}"));
}

TEST(Merge, ANewNameReplacesTheBlock) {
  const Value base = yaml("{optimizer: {name: sgd, lr: 0.1, momentum: 0.9}}");
  EXPECT_EQ(merge(base, yaml("{optimizer: {name: adamw}}")), yaml("{optimizer: {name: adamw}}"));
  EXPECT_EQ(merge(base, yaml("{optimizer: {name: sgd, lr: 1}}")), yaml("{optimizer: {name: sgd, lr: 1, momentum: 0.9}}"));
  EXPECT_EQ(merge(base, yaml("{optimizer: {lr: 1}}")), yaml("{optimizer: {name: sgd, lr: 1, momentum: 0.9}}"));
}

TEST(Merge, KeepsTheMarksOfWhatItTakes) {
  const Value merged = merge(parse_yaml("{a: 1, b: 2}", "base"), parse_yaml("{b: 3}", "over"));
  EXPECT_EQ(merged.at("a").mark().file, "base");
  EXPECT_EQ(merged.at("b").mark().file, "over");
  EXPECT_EQ(merged.as_map()[1].mark.file, "over");
}

}  // namespace
}  // namespace tessera
