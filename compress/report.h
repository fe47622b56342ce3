// What a pass did, for people and for layers.csv. docs/report.md defines every column. The time a rewrite took is left out, so
// that equal runs write equal files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compress/layer_report.h"

namespace tessera {

// A column of layers.csv, behind the stage's.
struct LayerColumn {
  std::string name;    // the last word of its key in LayerReport::fields()
  bool clock = false;  // holds a time or a ratio of times, in which two runs that are otherwise equal differ
};
std::vector<LayerColumn> layer_columns();
bool is_clock_column(std::string_view name);

// layers.csv: the header, and one line per layer of a stage. RFC 4180 quoting, "\n" line ends, numbers in the shortest form that
// reads back equal.
std::string layers_csv_header();
std::string layers_csv_rows(const std::string& stage, std::span<const LayerReport> layers);

// "Ranks by latency: asked 2x, predicted 2.01x, measured 1.97x"
std::string latency_text(const LatencyOutcome& latency);

// For people: one sentence on the whole, then a line per layer that stayed dense with its reason.
std::string summary(const PassReport& report);

// For people on a terminal: what was asked, then a table with a row per layer and one of the network. Times are of a batch.
std::string pass_text(const PassReport& report);

// Asked and reached, a table of the totals and one of the layers.
std::string pass_markdown(const PassReport& report);
// Text as it may stand in a cell of a Markdown table.
std::string markdown_cell(std::string_view text);

}  // namespace tessera
