#include "compress/report.h"

#include <algorithm>
#include <cmath>

#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {

namespace {

constexpr std::string_view kHeader =
    "stage,path,kind_before,kind_after,format,ranks_asked,rank_out,rank_in,relative_error,parameters_before,parameters_after,"
    "macs_before,macs_after,dense_ms,compressed_ms,speedup,speedup_low,speedup_high,network_share,decision,reason\n";

std::string timing_fields(const LayerReport& layer) {
  if (!layer.speed) return ",,,,,";
  const Speed& speed = *layer.speed;
  return str(shortest(speed.dense_ms), ',', shortest(speed.compressed_ms), ',', shortest(speed.ratio.median), ',',
             shortest(speed.ratio.low), ',', shortest(speed.ratio.high), ',',
             layer.network_share ? formatted("%.4f", *layer.network_share) : "");
}

std::string csv_row(const std::string& stage, const LayerReport& layer) {
  const std::string out = layer.ranks ? std::to_string(layer.ranks->out) : "";
  const std::string in = layer.ranks ? std::to_string(layer.ranks->in) : "";
  return str(csv_field(stage), ',', csv_field(layer.path), ',', layer.kind_before, ',', layer.kind_after, ',', layer.format, ',',
             csv_field(layer.ranks_asked), ',', out, ',', in, ',', shortest(layer.relative_error), ',', layer.parameters_before,
             ',', layer.parameters_after, ',', layer.macs_before, ',', layer.macs_after, ',', timing_fields(layer), ',',
             name_of(layer.decision), ',', csv_field(layer.reason), '\n');
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
  const double share = totals.before > 0 ? static_cast<double>(totals.after) / static_cast<double>(totals.before) : 1.0;
  return formatted("%.4f", share);
}

std::string totals_row(const char* label, const Totals& totals) {
  return str("| ", label, " | ", totals.before, " | ", totals.after, " | ", kept(totals), " |\n");
}

std::string ranks_cell(const LayerReport& layer) {
  if (!layer.ranks) return str("dense: ", layer.reason);
  return str("out ", layer.ranks->out, ", in ", layer.ranks->in, layer.reason.empty() ? "" : "; ", layer.reason);
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

// Rules in the order in which layers first ask; one, unless layers have rules of their own.
std::string asked(std::span<const LayerReport> layers) {
  std::vector<std::string> rules;
  for (const LayerReport& layer : layers) {
    if (std::find(rules.begin(), rules.end(), layer.ranks_asked) == rules.end()) rules.push_back(layer.ranks_asked);
  }
  std::string text;
  for (const std::string& rule : rules) text += (text.empty() ? std::string() : std::string("; ")) + rule;
  return text;
}

std::size_t count_factored(std::span<const LayerReport> layers) {
  return static_cast<std::size_t>(
      std::count_if(layers.begin(), layers.end(), [](const LayerReport& layer) { return layer.decision == Decision::factored; }));
}

}  // namespace

std::string layers_csv_header() { return std::string(kHeader); }

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

std::string pass_markdown(const PassReport& report) {
  const std::span<const LayerReport> layers = report.layers;
  std::string text = str("Asked: ", asked(layers), ". ", count_factored(layers), " of ", layers.size(),
                         " matched layers factored.\n\n| | before | after | kept |\n|---|---:|---:|---:|\n");
  text +=
      totals_row("parameters, matched layers", total(layers, &LayerReport::parameters_before, &LayerReport::parameters_after));
  text += totals_row("MACs, matched layers", total(layers, &LayerReport::macs_before, &LayerReport::macs_after));
  text += totals_row("parameters, network", {report.before.parameters, report.after.parameters});
  text += totals_row("MACs, network", {report.before.macs, report.after.macs});
  if (report.speed) text += str("\nThe network at ", report.timed_at, ": ", time_cell(report.speed), ".\n");
  text += "\n| layer | format | ranks | relative error | parameters | MACs | time |\n|---|---|---|---:|---:|---:|---|\n";
  for (const LayerReport& layer : layers) text += layer_row(layer);
  return text;
}

std::string summary(const PassReport& report) {
  std::int64_t factored = 0;
  std::int64_t macs_before = 0;
  std::int64_t macs_after = 0;
  std::string remarks;
  for (const LayerReport& layer : report.layers) {
    const bool dense = layer.decision == Decision::dense;
    if (dense || !layer.reason.empty()) remarks += str("\n  ", layer.path, dense ? " stays dense: " : " is kept: ", layer.reason);
    if (dense) continue;
    ++factored;
    macs_before += layer.macs_before;
    macs_after += layer.macs_after;
  }
  std::string network;
  if (report.speed) {
    network = str("; ", describe(report.speed->ratio), report.speed->faster ? " as fast" : " as fast, which is not faster,",
                  " at ", report.timed_at);
  }
  const double kept = macs_before > 0 ? 100.0 * static_cast<double>(macs_after) / static_cast<double>(macs_before) : 100.0;
  return str(factored, " of ", report.layers.size(), " matched layers factored, ", std::round(10.0 * kept) / 10.0,
             " % of their MACs kept; network: parameters ", report.before.parameters, " -> ", report.after.parameters, ", MACs ",
             report.before.macs, " -> ", report.after.macs, network, remarks);
}

}  // namespace tessera
