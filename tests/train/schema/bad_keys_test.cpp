// Every key is misspelled, mistyped and put out of range. Each fault gives one line with the place, the dotted path and a remedy.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/support/error.h"
#include "tests/train/schema/faults.h"
#include "tests/train/schema/key_files.h"
#include "tests/train/schema/test_files.h"
#include "train/config/yaml.h"
#include "train/experiment.h"

namespace tessera::testing {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> faults_in(const std::string& text) {
  try {
    parse_experiment(parse_yaml(text, "x.yaml"));
    return {};
  } catch (const ConfigError& error) {
    return lines_of(error.what());
  }
}

void expect_exactly(const FaultyFile& file) {
  std::vector<std::string> found = faults_in(file.text);
  std::vector<std::string> expected;
  for (const std::string& line : file.expected) expected.push_back("x.yaml:" + line);
  std::ranges::sort(found);
  std::ranges::sort(expected);
  if (!file.exact && found.size() == 1) found[0].resize(std::min(found[0].size(), expected[0].size()));
  EXPECT_EQ(found, expected) << file.what << "\n" << file.text;
}

class SchemaFaults : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { test_files(); }
};

TEST_F(SchemaFaults, AMisspelledKeyIsNamedWithTheRightOne) {
  for (const SchemaEntry& entry : experiment_schema()) expect_exactly(misspelled(entry));
}

TEST_F(SchemaFaults, AMistypedValueSaysWhatTheKeyTakes) {
  for (const SchemaEntry& entry : experiment_schema()) {
    for (const FaultyFile& file : mistyped(entry)) expect_exactly(file);
  }
}

TEST_F(SchemaFaults, AValueOutOfRangeSaysTheRange) {
  for (const SchemaEntry& entry : experiment_schema()) {
    for (const FaultyFile& file : out_of_range(entry)) expect_exactly(file);
  }
}

TEST_F(SchemaFaults, OnlyTheseKeysTakeAnyValueOfTheirType) {
  std::vector<std::string> unbounded;
  for (const SchemaEntry& entry : experiment_schema()) {
    const bool two_values = entry.type == "true or false";
    if (!is_block(entry) && !two_values && out_of_range(entry).empty()) unbounded.push_back(entry.path);
  }
  EXPECT_EQ(unbounded, (std::vector<std::string>{"data.root", "model.weights"}));
  for (const char* value : {"''", "' '", "/", "'a\\\\b'"}) {
    EXPECT_EQ(faults_in(str("version: 1\nname: x\ndata: {name: mnist, root: ", value == std::string("''") ? "x" : value,
                            "}\nmodel: {weights: ", value, "}\nstages: [{name: a, train: 1s}]\n")),
              std::vector<std::string>{});
  }
}

TEST_F(SchemaFaults, AFaultInEveryBlockIsReportedAtOnce) {
  const FaultyFile all = everything_wrong();
  EXPECT_GE(all.expected.size(), 25u);
  expect_exactly(all);
}

}  // namespace
}  // namespace tessera::testing
