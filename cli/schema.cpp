// schema: lists every key of an experiment file.
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "cli/schema_page.h"
#include "cli/verbs.h"
#include "core/config/range_text.h"
#include "core/config/read.h"
#include "core/support/error.h"
#include "train/experiment.h"

namespace tessera::cli {
namespace {

enum class Form { lines, json, page };

struct SchemaRow {
  SchemaEntry entry;

  void fields(Fields& f) {
    const FieldSpec& spec = entry.spec;
    f.add("key", entry.path, {.help = "dotted; [] stands for an item of a list, (name) for a form of a block"});
    f.add("type", entry.type, {.help = "of its value"});
    f.add("default", entry.default_value, {.help = "as JSON, texts without quotes; none where the key is absent"});
    f.add_computed("required", spec.required, {.help = "a file must have it"});
    f.add_computed("range", range_text(spec.range), {.help = "legal numbers; empty where any is"});
    f.add_computed("choices", std::vector<std::string>(spec.choices.begin(), spec.choices.end()), {.help = "legal texts"});
    f.add_computed("example", std::string(spec.example), {.help = "a legal value"});
    f.add_computed("help", std::string(spec.help), {.help = "what it says"});
    f.add_computed("observable", std::string(spec.observable), {.help = "where setting it shows"});
  }
};

std::string line_of(const SchemaEntry& entry) {
  std::string text(entry.spec.help);
  if (const std::string range = range_text(entry.spec.range); !range.empty()) text += str("; ", range);
  if (!entry.spec.choices.empty()) text += "; one of:";
  for (const std::string_view choice : entry.spec.choices) text += str(' ', choice);
  if (!entry.spec.example.empty()) text += str("; e.g. ", entry.spec.example);
  if (!entry.spec.observable.empty()) text += str("; shows in: ", entry.spec.observable);
  return text.starts_with("; ") ? text.substr(2) : text;
}

void print_lines(const std::vector<SchemaEntry>& entries) {
  for (const SchemaEntry& entry : entries) {
    const std::string fallback = entry.spec.required ? "required" : "default " + entry.default_value;
    std::printf("%-44s %-18s %-24s %s\n", entry.path.c_str(), entry.type.c_str(), fallback.c_str(), line_of(entry).c_str());
  }
}

void print_json(const std::vector<SchemaEntry>& entries) {
  Value list = Value::list();
  for (const SchemaEntry& entry : entries) list.as_list().push_back(write(SchemaRow{entry}));
  std::cout << to_json(list, 2) << '\n';
}

int print_schema(Form form) {
  const std::vector<SchemaEntry> entries = schema<ExperimentConfig>();
  if (form == Form::lines) print_lines(entries);
  if (form == Form::json) print_json(entries);
  if (form == Form::page) std::cout << schema_page(entries);
  return kDone;
}

}  // namespace

void add_schema(Verb program) {
  const Verb verb = program.add("schema", "List every key of an experiment file");
  auto json = std::make_shared<bool>(false);
  auto page = std::make_shared<bool>(false);
  verb.flag("--json", *json, "for another program to read");
  verb.flag("--markdown", *page, "as a page, docs/config.md");
  verb.footer("Example: tessera schema | grep factorise");
  verb.runs([json, page] {
    TESSERA_CHECK(!(*json && *page), ConfigError, "schema: --json or --markdown, not both");
    return print_schema(*json ? Form::json : *page ? Form::page : Form::lines);
  });
}

}  // namespace tessera::cli
