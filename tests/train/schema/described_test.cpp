// Every key of the schema has a description: the output of `tessera schema` is complete.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/config/range_text.h"
#include "core/support/error.h"
#include "tests/support/scopes.h"
#include "tests/train/schema/key_files.h"
#include "tests/train/schema/test_files.h"
#include "train/config/yaml.h"

namespace tessera::testing {
namespace {

bool is_known(std::string_view observable) {
  constexpr std::array<std::string_view, 5> kPlaces{"plan", "bytes", "report", "files", "log"};
  constexpr std::string_view kNone = "none: ";
  return std::ranges::find(kPlaces, observable) != kPlaces.end() ||
         (observable.starts_with(kNone) && observable.size() > kNone.size());
}

TEST(SchemaDescription, EveryKeyHasHelpTypeDefaultExampleAndObservable) {
  for (const SchemaEntry& entry : experiment_schema()) {
    EXPECT_FALSE(entry.spec.help.empty()) << entry.path;
    EXPECT_FALSE(entry.type.empty()) << entry.path;
    EXPECT_FALSE(entry.spec.example.empty()) << entry.path;
    EXPECT_TRUE(is_known(entry.spec.observable)) << entry.path << " shows in '" << entry.spec.observable << '\'';
    EXPECT_EQ(entry.default_value.empty(), entry.spec.required) << entry.path;
  }
}

TEST(SchemaDescription, EveryNumberHasARange) {
  for (const SchemaEntry& entry : experiment_schema()) {
    const bool number = entry.type.find("integer") != std::string::npos || entry.type.find("number") != std::string::npos;
    EXPECT_TRUE(!number || !range_text(entry.spec.range).empty()) << entry.path;
  }
}

TEST(SchemaDescription, EveryExampleIsLegal) {
  test_files();
  const testing::VariableScope data("TESSERA_DATA", "/made-up");
  for (const SchemaEntry& entry : experiment_schema()) {
    SCOPED_TRACE(entry.path);
    Value file = files_for(entry).with;
    const Place place = open_place(file, entry.path);
    const bool choice = !entry.spec.choices.empty();
    place.block->set(place.key, choice ? Value(entry.spec.example) : parse_yaml(entry.spec.example, entry.path));
    overlay(file, parse_yaml("{data: {batch: 64}}", "batch"));  // a multiple of micro_batch's example
    if (file.at("data").find("crop")) overlay(file, parse_yaml("{data: {resize: 256}}", "resize"));  // crop fits this default
    EXPECT_EQ(fault_of(file), "") << entry.spec.example;
  }
}

}  // namespace
}  // namespace tessera::testing
