// For every key of the schema, another legal value must show where its declaration says. A key that shows nowhere is parsed but
// ignored.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "core/support/error.h"
#include "tests/train/schema/key_contexts.h"
#include "tests/train/schema/key_files.h"
#include "tests/train/schema/observed.h"
#include "tests/train/schema/test_files.h"

namespace tessera::testing {
namespace {

constexpr std::string_view kNone = "none: ";

KeyContext::Refused refused_of(const SchemaEntry& entry) {
  const std::vector<const KeyContext*> rows = contexts_of(entry.path);
  return rows.empty() || rows.back()->path != shared_path(entry.path) ? KeyContext::Refused::none : rows.back()->refused;
}

void expect_runnable(const SchemaEntry& entry, const KeyFiles& files) {
  const KeyContext::Refused refused = refused_of(entry);
  EXPECT_EQ(observed(files.without).refused(), refused == KeyContext::Refused::without)
      << entry.path << " without: " << observed(files.without).at("plan");
  EXPECT_EQ(observed(files.with).refused(), refused == KeyContext::Refused::with)
      << entry.path << " with: " << observed(files.with).at("plan");
}

bool shows(const KeyFiles& files, std::string_view where) {
  return observed(files.without).at(where) != observed(files.with).at(where);
}

// A key with one legal value cannot show. If it names further choices, the check must refuse each of them by the key's name.
void expect_single(const SchemaEntry& entry, const KeyFiles& files) {
  if (entry.spec.choices.size() == 1 || entry.spec.range.min == entry.spec.range.max) {
    EXPECT_TRUE(entry.spec.observable.starts_with(kNone)) << entry.path;
    return;
  }
  EXPECT_GT(entry.spec.choices.size(), 1u) << entry.path << ": no other legal value is known; one belongs in key_contexts.cpp";
  for (const std::string_view choice : entry.spec.choices) {
    if (choice == entry.default_value) continue;
    Value file = files.without;
    const Place place = open_place(file, entry.path);
    place.block->set(place.key, Value(choice));
    EXPECT_NE(fault_of(file).find(place.dotted() + ": "), std::string::npos) << entry.path << ": " << choice;
  }
}

void expect_observable(const SchemaEntry& entry) {
  SCOPED_TRACE(entry.path);
  try {
    const KeyFiles& files = files_for(entry);
    if (files.single) return expect_single(entry, files);
    if (!entry.spec.observable.starts_with(kNone)) {
      expect_runnable(entry, files);
      EXPECT_TRUE(shows(files, entry.spec.observable)) << "setting it does not show in " << entry.spec.observable;
      return;
    }
    EXPECT_FALSE(shows(files, "plan"));
    EXPECT_FALSE(shows(files, "bytes"));
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

bool is_inside(const SchemaEntry& entry, const std::string& block) {
  return entry.path.size() > block.size() && entry.path.starts_with(block) &&
         std::string_view(".[(").find(entry.path[block.size()]) != std::string_view::npos;
}

// A block shows in a place if one of its keys does.
void expect_block_observable(const SchemaEntry& block) {
  const std::string_view where = block.spec.observable;
  std::vector<SchemaEntry> keys;
  for (const SchemaEntry& entry : experiment_schema()) {
    if (is_inside(entry, block.path) && !is_block(entry)) keys.push_back(entry);
  }
  const bool declared = std::ranges::any_of(keys, [&](const SchemaEntry& key) { return key.spec.observable == where; });
  const auto shown = [&](const SchemaEntry& key) {
    const KeyFiles& files = files_for(key);
    return !files.single && shows(files, where);
  };
  EXPECT_TRUE(declared || std::ranges::any_of(keys, shown)) << block.path << ": no key of it shows in " << where;
}

class Observables : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { test_files(); }

  static void expect_all(bool (*chosen)(const std::string& path)) {
    int count = 0;
    for (const SchemaEntry& entry : experiment_schema()) {
      if (!chosen(entry.path)) continue;
      ++count;
      is_block(entry) ? expect_block_observable(entry) : expect_observable(entry);
    }
    EXPECT_GT(count, 5);
  }
};

bool is_of_stage(const std::string& path) { return path.starts_with("stages"); }
bool is_of_data_or_model(const std::string& path) { return path.starts_with("data") || path.starts_with("model"); }

TEST_F(Observables, OfDataAndModel) { expect_all(&is_of_data_or_model); }
TEST_F(Observables, OfStages) { expect_all(&is_of_stage); }
TEST_F(Observables, OfTheRest) {
  expect_all([](const std::string& path) { return !is_of_stage(path) && !is_of_data_or_model(path); });
}

TEST_F(Observables, EveryContextBelongsToAKey) {
  for (const KeyContext& row : all_contexts()) {
    const bool known = std::ranges::any_of(experiment_schema(), [&](const SchemaEntry& entry) {
      const std::vector<const KeyContext*> rows = contexts_of(entry.path);
      return std::ranges::find(rows, &row) != rows.end();
    });
    EXPECT_TRUE(known) << row.path << " is no key of the schema any more";
  }
}

}  // namespace
}  // namespace tessera::testing
