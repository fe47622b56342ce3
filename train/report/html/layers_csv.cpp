#include <algorithm>
#include <charconv>
#include <map>

#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/html/run_files.h"

namespace tessera {
namespace {

using Row = std::vector<std::string>;

// The cells of a row, by column name.
class Cells {
 public:
  Cells(const std::map<std::string, std::size_t>& columns, const Row& row, std::string where)
      : columns_(columns), row_(row), where_(std::move(where)) {}

  const std::string& text(const std::string& column) const { return row_[columns_.at(column)]; }

  template <class Number>
  Number number(const std::string& column) const {
    const std::string& cell = text(column);
    Number value{};
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    TESSERA_CHECK(error == std::errc() && end == cell.data() + cell.size(), IoError, where_, ": column '", column, "': '", cell,
                  "' is no number");
    return value;
  }

  std::optional<double> optional_number(const std::string& column) const {
    return text(column).empty() ? std::nullopt : std::optional(number<double>(column));
  }

 private:
  const std::map<std::string, std::size_t>& columns_;
  const Row& row_;
  std::string where_;
};

LayerLine line_of(const Cells& cells) {
  LayerLine line;
  line.stage = cells.text("stage");
  line.path = cells.text("path");
  line.format = cells.text("format");
  line.ranks = cells.text("ranks");
  line.phase = cells.text("phase");
  line.decision = cells.text("decision");
  line.reason = cells.text("reason");
  line.parameters_before = cells.number<std::int64_t>("parameters_before");
  line.parameters_after = cells.number<std::int64_t>("parameters_after");
  line.macs_before = cells.number<std::int64_t>("macs_before");
  line.macs_after = cells.number<std::int64_t>("macs_after");
  line.dense_ms = cells.optional_number("dense_ms");
  line.compressed_ms = cells.optional_number("compressed_ms");
  line.speedup = cells.optional_number("speedup");
  line.speedup_low = cells.optional_number("speedup_low");
  line.speedup_high = cells.optional_number("speedup_high");
  return line;
}

}  // namespace

std::vector<LayerLine> parse_layers_csv(const std::string& text, const std::string& origin) {
  const std::vector<Row> rows = parse_csv(text, origin);
  TESSERA_CHECK(!rows.empty(), IoError, origin, ":1: is empty; its first line names the columns");
  std::map<std::string, std::size_t> columns;
  for (std::size_t i = 0; i < rows[0].size(); ++i) columns[rows[0][i]] = i;
  for (const char* const name :
       {"stage", "path", "format", "ranks", "phase", "decision", "reason", "parameters_before", "parameters_after", "macs_before",
        "macs_after", "dense_ms", "compressed_ms", "speedup", "speedup_low", "speedup_high"}) {
    TESSERA_CHECK(columns.contains(name), IoError, origin, ":1: has no column '", name, "'");
  }
  std::vector<LayerLine> lines;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    std::string where = str(origin, ':', i + 1);  // no cell holds a line break
    TESSERA_CHECK(rows[i].size() == rows[0].size(), IoError, where, ": has ", rows[i].size(), " fields, the header ",
                  rows[0].size());
    lines.push_back(line_of(Cells(columns, rows[i], std::move(where))));
  }
  return lines;
}

}  // namespace tessera
