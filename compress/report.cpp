#include "compress/report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {

namespace {

// The leaves of LayerReport::fields() in its order. Their keys are those of Value trees.
struct Leaf {
  std::string key;  // "speed.dense_ms"
  LayerColumn column;
};

const std::vector<Leaf>& leaves() {
  static const std::vector<Leaf> all = [] {
    std::vector<Leaf> made;
    for (const SchemaEntry& entry : schema<LayerReport>()) {
      if (entry.type == "block") continue;
      made.push_back({entry.path, {entry.path.substr(entry.path.rfind('.') + 1), entry.spec.clock}});
    }
    return made;
  }();
  return all;
}

// The value at a dotted key, null if there is none.
Value value_at(const Value& row, std::string_view key) {
  const std::size_t dot = key.find('.');
  const Value* found = row.find(key.substr(0, dot));
  if (found == nullptr) return {};
  return dot == std::string_view::npos ? *found : value_at(*found, key.substr(dot + 1));
}

std::string csv_cell(const Value& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return csv_field(value.as_string());
  if (value.kind() == Value::Kind::real) return shortest(value.as_double());
  if (!value.is_map()) return to_json(value);
  std::string cell;
  for (const Value::Entry& entry : value.as_map()) cell += str(cell.empty() ? "" : " ", entry.key, ' ', csv_cell(entry.value));
  return cell;
}

std::string csv_row(const std::string& stage, const LayerReport& layer) {
  const Value row = write(layer);
  std::string text = csv_field(stage);
  for (const Leaf& leaf : leaves()) text += ',' + csv_cell(value_at(row, leaf.key));
  return text + '\n';
}

struct Totals {
  std::int64_t before = 0;
  std::int64_t after = 0;
};

Totals total(std::span<const LayerReport> layers, std::int64_t LayerReport::*before, std::int64_t LayerReport::*after) {
  Totals totals;
  for (const LayerReport& layer : layers) {
    totals.before += layer.*before;
    totals.after += layer.*after;
  }
  return totals;
}

std::string kept(const Totals& totals) {
  if (totals.before == 0) return totals.after == 0 ? "1.0000" : "-";  // a look-up takes no MACs, products of its factors do
  return formatted("%.4f", static_cast<double>(totals.after) / static_cast<double>(totals.before));
}

std::string totals_row(const char* label, const Totals& totals) {
  return str("| ", label, " | ", totals.before, " | ", totals.after, " | ", kept(totals), " |\n");
}

constexpr const char* kNotInDecidingRounds = "not faster in the rounds that decide";

// Empty if the layer is faster. The rounds that decide are not the rounds that are reported.
std::string not_faster(const Speed& speed) {
  if (speed.faster) return "";
  return speed.ratio.low > kFasterRatio ? kNotInDecidingRounds : "not faster";
}

// For a layer that is not faster although the reported rounds say so.
std::string in_other_rounds(const LayerReport& layer) {
  const bool differs = layer.speed && !layer.reason.empty() && not_faster(*layer.speed) == kNotInDecidingRounds;
  return differs ? ", by the rounds that decide" : "";
}

std::string ranks_cell(const LayerReport& layer) {
  if (!layer.ranks) return str("dense: ", layer.reason, in_other_rounds(layer));
  return str(to_string(*layer.ranks), layer.reason.empty() ? "" : "; ", layer.reason, in_other_rounds(layer));
}

std::string time_cell(const std::optional<Speed>& speed) {
  if (!speed) return "-";
  return str(shortest(speed->dense_ms), " -> ", shortest(speed->compressed_ms), " ms, ", describe(speed->ratio));
}

std::string layer_row(const LayerReport& layer) {
  return str("| ", markdown_cell(layer.path), " | ", layer.format, " | ", markdown_cell(ranks_cell(layer)), " | ",
             formatted("%.4f", layer.relative_error), " | ", layer.parameters_before, " -> ", layer.parameters_after, " | ",
             layer.macs_before, " -> ", layer.macs_after, " | ", time_cell(layer.speed), " |\n");
}

// The different rules, in the order in which layers first ask for them. There is one unless layers have separate rules.
std::string asked(std::span<const LayerReport> layers) {
  std::vector<std::string> rules;
  for (const LayerReport& layer : layers) {
    if (std::find(rules.begin(), rules.end(), layer.ranks_asked) == rules.end()) rules.push_back(layer.ranks_asked);
  }
  std::string text;
  for (const std::string& rule : rules) text += (text.empty() ? std::string() : std::string("; ")) + rule;
  return text;
}

// "2 of 3 matched layers factored". If layers were changed in several ways, their words are joined by "or".
std::string count_changed(std::span<const LayerReport> layers) {
  std::size_t changed = 0;
  std::vector<std::string> words;
  for (const LayerReport& layer : layers) {
    if (layer.stays_dense()) continue;
    ++changed;
    if (std::ranges::find(words, layer.decision) == words.end()) words.push_back(layer.decision);
  }
  std::string text;
  for (const std::string& word : words) text += str(text.empty() ? "" : " or ", word);
  return str(changed, " of ", layers.size(), " matched layers ", text.empty() ? "changed" : text);
}

// The speeds of a pass's network: in the phase that decides, then in the other phases.
std::vector<PhaseSpeed> network_speeds(const PassReport& report) {
  std::vector<PhaseSpeed> speeds;
  if (report.speed) speeds.push_back({{}, report.timed_at, *report.speed});
  speeds.insert(speeds.end(), report.other_phases.begin(), report.other_phases.end());
  return speeds;
}

using Cells = std::vector<std::string>;

std::string change(std::int64_t before, std::int64_t after) { return str(before, " -> ", after); }

void append_times(Cells& cells, const std::optional<Speed>& speed) {
  if (!speed) return void(cells.insert(cells.end(), 3, "-"));
  cells.insert(cells.end(), {shortest(speed->dense_ms), shortest(speed->compressed_ms), describe(speed->ratio)});
}

}  // namespace

std::vector<LayerColumn> layer_columns() {
  std::vector<LayerColumn> columns;
  for (const Leaf& leaf : leaves()) columns.push_back(leaf.column);
  return columns;
}

bool is_clock_column(std::string_view name) {
  return std::ranges::any_of(leaves(), [&](const Leaf& leaf) { return leaf.column.name == name && leaf.column.clock; });
}

std::string layers_csv_header() {
  std::string header = "stage";
  for (const Leaf& leaf : leaves()) header += ',' + leaf.column.name;
  return header + '\n';
}

std::string layers_csv_rows(const std::string& stage, std::span<const LayerReport> layers) {
  std::string rows;
  for (const LayerReport& layer : layers) rows += csv_row(stage, layer);
  return rows;
}

std::string markdown_cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c == '\n' ? ' ' : c;
  }
  return cell;
}

std::string latency_text(const LatencyOutcome& latency) {
  if (!latency.reached()) {
    return str("Ranks by latency: ", latency.asked, "x cannot be reached; at the fastest ranks of each layer the network is ",
               shortest(latency.fastest), "x as fast, predicted ", shortest(latency.predicted), 'x');
  }
  const double miss = std::abs(latency.measured / latency.asked - 1);
  return str("Ranks by latency: asked ", latency.asked, "x, predicted ", shortest(latency.predicted), "x, measured ",
             shortest(latency.measured), 'x', miss > 0.1 ? formatted(", missed by %.0f %%", 100 * miss) : "");
}

std::string pass_markdown(const PassReport& report) {
  const std::span<const LayerReport> layers = report.layers;
  std::string text =
      str("Asked: ", asked(layers), ". ", count_changed(layers), ".\n\n| | before | after | kept |\n|---|---:|---:|---:|\n");
  text +=
      totals_row("parameters, matched layers", total(layers, &LayerReport::parameters_before, &LayerReport::parameters_after));
  text += totals_row("MACs, matched layers", total(layers, &LayerReport::macs_before, &LayerReport::macs_after));
  text += totals_row("parameters, network", {report.before.parameters, report.after.parameters});
  text += totals_row("MACs, network", {report.before.macs, report.after.macs});
  for (const PhaseSpeed& network : network_speeds(report)) {
    text += str("\nThe network at ", network.timed_at, ": ", time_cell(network.speed), network.speed.faster ? "" : ", ",
                not_faster(network.speed), ".\n");
  }
  if (report.latency) text += str("\n", latency_text(*report.latency), ".\n");
  if (report.recalibrated > 0) {
    text += str("\nBatch-norm statistics were measured anew on ", report.recalibrated, " training batches.\n");
  }
  text += "\n| layer | format | ranks | relative error | parameters | MACs | time |\n|---|---|---|---:|---:|---:|---|\n";
  for (const LayerReport& layer : layers) text += layer_row(layer);
  return text;
}

std::string pass_text(const PassReport& report) {
  std::vector<Cells> rows{
      {"layer", "format", "ranks", "error", "parameters", "MACs", "dense ms", "ms", "speed-up (95 %)", "decision"}};
  for (const LayerReport& layer : report.layers) {
    Cells& cells = rows.emplace_back(Cells{layer.path, layer.format, layer.ranks ? to_string(*layer.ranks) : "-",
                                           layer.ranks ? formatted("%.4f", layer.relative_error) : "-",
                                           change(layer.parameters_before, layer.parameters_after),
                                           change(layer.macs_before, layer.macs_after)});
    append_times(cells, layer.speed);
    cells.push_back(str(layer.decision, layer.reason.empty() ? "" : ": ", layer.reason, in_other_rounds(layer)));
  }
  Cells& network = rows.emplace_back(Cells{"network", "", "", "", change(report.before.parameters, report.after.parameters),
                                           change(report.before.macs, report.after.macs)});
  append_times(network, report.speed);
  network.push_back(
      str(count_changed(report.layers), report.speed && !report.speed->faster ? ", " + not_faster(*report.speed) : ""));
  for (const PhaseSpeed& other : report.other_phases) {
    Cells& cells = rows.emplace_back(Cells{str("in ", other.phase), "", "", "", "", ""});
    append_times(cells, other.speed);
    cells.push_back(str(not_faster(other.speed), other.speed.faster ? "at " : " at ", other.timed_at));
  }
  const std::string timed = report.timed_at.empty() ? std::string() : "; the network timed at " + report.timed_at;
  const std::string latency = report.latency ? "; " + latency_text(*report.latency) : std::string();
  return str(report.pass, ": asked ", asked(report.layers), latency, timed, '\n',
             aligned(rows, {false, false, false, true, true, true, true, true, true, false}));
}

std::string summary(const PassReport& report) {
  std::int64_t macs_before = 0;
  std::int64_t macs_after = 0;
  std::string remarks;
  for (const LayerReport& layer : report.layers) {
    const bool dense = layer.stays_dense();
    if (dense || !layer.reason.empty()) {
      remarks += str("\n  ", layer.path, dense ? " stays dense: " : " is kept: ", layer.reason, in_other_rounds(layer));
      if (layer.speed) remarks += str("; alone ", describe(layer.speed->ratio));
    }
    if (dense) continue;
    macs_before += layer.macs_before;
    macs_after += layer.macs_after;
  }
  std::string network;
  if (report.latency) network = "; " + latency_text(*report.latency);
  for (const PhaseSpeed& timed : network_speeds(report)) {
    const std::string but = timed.speed.faster ? "" : str(", which is ", not_faster(timed.speed), ",");
    network += str("; ", describe(timed.speed.ratio), " as fast", but, " at ", timed.timed_at);
  }
  if (report.recalibrated > 0) network += str("; batch norms measured anew on ", report.recalibrated, " batches");
  const double kept = macs_before > 0 ? 100.0 * static_cast<double>(macs_after) / static_cast<double>(macs_before) : 100.0;
  const bool had_none = macs_before == 0 && macs_after > 0;
  const std::string of_macs = had_none ? "" : str(", ", std::round(10.0 * kept) / 10.0, " % of their MACs kept");
  return str(count_changed(report.layers), of_macs, "; network: parameters ", report.before.parameters, " -> ",
             report.after.parameters, ", MACs ", report.before.macs, " -> ", report.after.macs, network, remarks);
}

}  // namespace tessera
