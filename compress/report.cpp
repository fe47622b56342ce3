#include "compress/report.h"

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

}  // namespace tessera
