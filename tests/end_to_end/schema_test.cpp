// What the program makes of the schema: faulty files generated from it, and the list of its keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "core/config/range_text.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/end_to_end/program.h"
#include "tests/train/schema/faults.h"
#include "tests/train/schema/key_files.h"
#include "tests/train/schema/test_files.h"
#include "train/experiment.h"

namespace tessera::testing {
namespace {

class SchemaProgram : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { test_files(); }

  void expect_exactly(const FaultyFile& file) const {
    const std::string path = folder_ / "faulty.yaml";
    write_bytes(path, file.text);
    const Outcome outcome = run_program({"validate", path});
    EXPECT_EQ(outcome.exit_code, 2) << file.what;
    std::multiset<std::string> found, expected;
    std::istringstream in(outcome.output);
    for (std::string line; std::getline(in, line);) found.insert(line);
    for (const std::string& line : file.expected) expected.insert(path + ":" + line);
    EXPECT_EQ(found, expected) << file.what;
  }

  TemporaryFolder folder_;
};

TEST_F(SchemaProgram, FaultyKeysExitWithTwoAndTheirLine) {
  const std::vector<SchemaEntry>& entries = experiment_schema();
  for (std::size_t i = 0; i < entries.size(); i += entries.size() / 10) {
    expect_exactly(misspelled(entries[i]));
    if (entries[i].type != "any") expect_exactly(mistyped(entries[i]).front());
  }
}

TEST_F(SchemaProgram, AFaultInEveryBlockIsReportedAtOnce) { expect_exactly(everything_wrong()); }

TEST_F(SchemaProgram, ListsEveryKeyWithAllThatIsKnownOfIt) {
  const Outcome outcome = run_program({"schema", "--json"});
  ASSERT_EQ(outcome.exit_code, 0);
  const Value rows = parse_json(outcome.output, "schema --json");
  const std::vector<SchemaEntry> entries = schema<ExperimentConfig>();
  ASSERT_EQ(rows.as_list().size(), entries.size());
  for (std::size_t i = 0; i < rows.as_list().size(); ++i) {
    const SchemaEntry& entry = entries[i];
    const Value& row = rows.as_list()[i];
    EXPECT_EQ(row.at("key"), Value(entry.path));
    EXPECT_EQ(row.at("type"), Value(entry.type));
    EXPECT_EQ(row.at("default"), Value(entry.default_value));
    EXPECT_EQ(row.at("range"), Value(range_text(entry.spec.range)));
    EXPECT_EQ(row.at("choices").as_list().size(), entry.spec.choices.size());
    EXPECT_EQ(row.at("help"), Value(entry.spec.help));
    EXPECT_EQ(row.at("example"), Value(entry.spec.example));
    EXPECT_EQ(row.at("observable"), Value(entry.spec.observable));
  }
}

TEST_F(SchemaProgram, TheListForReadersHasALinePerKey) {
  const Outcome outcome = run_program({"schema"});
  ASSERT_EQ(outcome.exit_code, 0);
  std::istringstream in(outcome.output);
  for (const SchemaEntry& entry : schema<ExperimentConfig>()) {
    std::string line;
    ASSERT_TRUE(std::getline(in, line));
    EXPECT_EQ(line.find(entry.path + " "), 0u) << line;
    const std::string shown = str("shows in: ", entry.spec.observable);
    for (const std::string_view part :
         {std::string_view(entry.type), entry.spec.help, entry.spec.example, std::string_view(shown)}) {
      EXPECT_NE(line.find(part), std::string::npos) << part << " is not in " << line;
    }
  }
}

TEST_F(SchemaProgram, ThePageOfTheDocumentsIsTheOneThatItWrites) {
  const Outcome outcome = run_program({"schema", "--markdown"});
  ASSERT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.output == read_bytes(TESSERA_DOCS "/config.md")) << "run: tessera schema --markdown > docs/config.md";
  // Each key has a row, heads a section, or belongs to a section that refers to an earlier one.
  std::map<std::string, std::size_t> counts;  // keys of a section, without the key that heads it
  std::string section;
  std::size_t keys = 0;
  std::istringstream in(outcome.output);
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> cells = split(line, '|');
    if (line.starts_with("## ")) {
      section = line.substr(3);
      if (line.starts_with("## `")) ++keys;
    } else if (line.starts_with("Its keys are those of ")) {
      counts[section] = counts.at(line.substr(22, line.size() - 23));
    } else if (line.starts_with("| `")) {
      const bool named = std::ranges::count(line, '|') - std::ranges::count(line, '\\') == 6;
      counts[section] += named ? split(cells[2], ',').size() : 1;
    }
  }
  for (const auto& [name, count] : counts) keys += count;
  EXPECT_EQ(keys, schema<ExperimentConfig>().size());
  expect_outcome(run_program({"schema", "--markdown", "--json"}), 2, "schema: --json or --markdown, not both");
}

}  // namespace
}  // namespace tessera::testing
