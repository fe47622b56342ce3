#include "cli/schema_page.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/config/range_text.h"
#include "core/support/error.h"

namespace tessera::cli {
namespace {

constexpr std::string_view kStage = "stages[].";

constexpr const char* kHead = R"(# Keys of an experiment file

`tessera schema --markdown` writes this page. [experiment.md](experiment.md) says how the blocks work together. A key without a
default may be left out, and then has no effect. Where the keys of a block depend on its `name`, the column *of* lists the names that
have the key; names that have the same keys, such as `cifar10` and `cifar100`, stand under the first of them.
)";

struct Row {
  std::string key;  // within its block: "ranks.latency.speedup", "augment[].flip"
  std::vector<std::string> names;  // names of the block's forms that have the key; empty = all
  std::string rest;  // the cells after these
};

bool operator==(const Row& a, const Row& b) { return a.key == b.key && a.names == b.names && a.rest == b.rest; }

struct Section {
  std::string block;  // "" = the file itself, "data", "stages[]", "stages[].prune"
  std::string help = {};
  std::vector<Row> rows = {};
};

// The block of a key: "data(glyphs).val" and "data.name" -> "data", "stages[].prune.sparsity.end" -> "stages[].prune",
// "stages[].name" -> "stages[]", "seed" -> "".
std::string block_of(const std::string& path) {
  const bool staged = path.starts_with(kStage);
  const std::size_t begin = staged ? kStage.size() : 0;
  const std::size_t end = path.find_first_of("(.", begin);
  if (end != std::string::npos) return path.substr(0, end);
  return staged ? std::string(kStage.substr(0, kStage.size() - 1)) : "";
}

std::string code(std::string_view text) { return str('`', text, '`'); }

// Escapes "|", which would end the cell, even inside code.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

std::string meaning_of(const FieldSpec& spec) {
  std::string text(spec.help);
  const auto append = [&](const std::string& part) { text += str(text.empty() ? "" : "; ", part); };
  if (const std::string range = range_text(spec.range); !range.empty()) append(range);
  if (!spec.choices.empty()) {
    std::string choices;
    for (const std::string_view choice : spec.choices) choices += str(choices.empty() ? "" : ", ", code(choice));
    append("one of " + choices);
  }
  if (!spec.example.empty()) append("e.g. " + code(spec.example));
  return text;
}

std::string default_of(const SchemaEntry& entry) {
  if (entry.spec.required) return "required";
  return entry.default_value == "none" ? "" : code(entry.default_value);
}

// Adds a row for the entry. If a row of another form has the same key and text, adds the entry's form to that row instead.
void add_row(std::vector<Row>& rows, const std::string& block, const SchemaEntry& entry) {
  std::string key = entry.path.substr(block.empty() ? 0 : block.size());
  Row row{.key = {}, .names = {}, .rest = {}};
  if (key.starts_with('(')) {
    const std::size_t close = key.find(')');
    row.names.push_back(key.substr(1, close - 1));
    key.erase(0, close + 1);
  }
  row.key = key.starts_with('.') ? key.substr(1) : key;
  row.rest = str(cell(entry.type), " | ", cell(default_of(entry)), " | ", cell(meaning_of(entry.spec)));
  const auto same = std::ranges::find_if(
      rows, [&](const Row& other) { return !other.names.empty() && other.key == row.key && other.rest == row.rest; });
  if (same != rows.end() && !row.names.empty()) {
    same->names.push_back(row.names.front());
  } else {
    rows.push_back(std::move(row));
  }
}

std::vector<Section> sections_of(const std::vector<SchemaEntry>& entries) {
  std::vector<Section> sections{{.block = ""}};
  for (const SchemaEntry& entry : entries) {
    const auto has_keys = [&](const SchemaEntry& other) {
      return other.path.size() > entry.path.size() && other.path.starts_with(entry.path) &&
             std::string_view("(.[").find(other.path[entry.path.size()]) != std::string_view::npos;
    };
    std::string block = block_of(entry.path);
    // A block of the file or of a stage heads a section of its own if it has keys. Other entries are rows.
    const bool heads = (block.empty() || block == "stages[]") && std::ranges::any_of(entries, has_keys);
    if (heads) block = entry.path == "stages" ? "stages[]" : entry.path;
    auto section = std::ranges::find(sections, block, &Section::block);
    if (section == sections.end()) section = sections.insert(sections.end(), {.block = block});
    if (heads) {
      section->help = str(entry.spec.help, entry.spec.required ? ". Required." : ".");
      section->help[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(section->help[0])));
    } else {
      add_row(section->rows, block, entry);
    }
  }
  return sections;
}

std::string table_of(const Section& section) {
  const bool named = std::ranges::any_of(section.rows, [](const Row& row) { return !row.names.empty(); });
  std::string text = named ? "| key | of | type | default | what it says |\n|---|---|---|---|---|\n"
                           : "| key | type | default | what it says |\n|---|---|---|---|\n";
  for (const Row& row : section.rows) {
    std::string names;
    for (const std::string& name : row.names) names += str(names.empty() ? "" : ", ", name);
    text += str("| ", code(row.key), " | ", named ? names + " | " : "", row.rest, " |\n");
  }
  return text;
}

}  // namespace

std::string schema_page(const std::vector<SchemaEntry>& entries) {
  const std::vector<Section> sections = sections_of(entries);
  std::string page = kHead;
  for (auto section = sections.begin(); section != sections.end(); ++section) {
    page += str("\n## ", section->block.empty() ? "The file" : code(section->block), "\n\n");
    if (!section->help.empty()) page += section->help + "\n\n";
    const auto earlier =
        std::find_if(sections.begin(), section, [&](const Section& other) { return other.rows == section->rows; });
    if (earlier != section) {
      page += str("Its keys are those of ", code(earlier->block), ".\n");
    } else {
      page += table_of(*section);
    }
  }
  return page;
}

}  // namespace tessera::cli
