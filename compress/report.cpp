#include "compress/report.h"

#include <cmath>

#include <charconv>

#include "core/error.h"

namespace tessera {

namespace {

constexpr std::string_view kHeader =
    "path,kind_before,kind_after,format,ranks_asked,rank_out,rank_in,relative_error,parameters_before,parameters_after,"
    "macs_before,macs_after,decision,reason\n";

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + '"';
}

std::string shortest(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
}

std::string csv_row(const LayerReport& layer) {
  const std::string out = layer.ranks ? std::to_string(layer.ranks->out) : "";
  const std::string in = layer.ranks ? std::to_string(layer.ranks->in) : "";
  return str(quoted(layer.path), ',', layer.kind_before, ',', layer.kind_after, ',', layer.format, ',',
             quoted(layer.ranks_asked), ',', out, ',', in, ',', shortest(layer.relative_error), ',', layer.parameters_before, ',',
             layer.parameters_after, ',', layer.macs_before, ',', layer.macs_after, ',', name_of(layer.decision), ',',
             quoted(layer.reason), '\n');
}

}  // namespace

std::string layers_csv(std::span<const LayerReport> layers) {
  std::string csv(kHeader);
  for (const LayerReport& layer : layers) csv += csv_row(layer);
  return csv;
}

std::string summary(const PassReport& report) {
  std::int64_t factored = 0;
  std::int64_t macs_before = 0;
  std::int64_t macs_after = 0;
  std::string dense;
  for (const LayerReport& layer : report.layers) {
    if (layer.decision == Decision::dense) {
      dense += str("\n  ", layer.path, " stays dense: ", layer.reason);
      continue;
    }
    ++factored;
    macs_before += layer.macs_before;
    macs_after += layer.macs_after;
  }
  const double kept = macs_before > 0 ? 100.0 * static_cast<double>(macs_after) / static_cast<double>(macs_before) : 100.0;
  return str(factored, " of ", report.layers.size(), " matched layers factored, ", std::round(10.0 * kept) / 10.0,
             " % of their MACs kept; network: parameters ", report.before.parameters, " -> ", report.after.parameters, ", MACs ",
             report.before.macs, " -> ", report.after.macs, dense);
}

}  // namespace tessera
