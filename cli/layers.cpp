// layers: what an experiment file may compress.
#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/file_verb.h"
#include "compress/formats/builtin.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "layers/tied_linear.h"
#include "train/data/builtin.h"
#include "train/plan/plan.h"
#include "train/run/import_weights.h"

namespace tessera::cli {
namespace {

// The list shows what selectors may name, so it does not depend on the stages.
Value compressible_layers(const ExperimentConfig& config) {
  const DataSplits data = load_data(config.data, static_cast<std::uint64_t>(config.seed));
  const Shape input = sample_shape(data);
  const std::unique_ptr<Module> model = empty_model(real_vfs(), config.model, input);
  initialize(*model, static_cast<std::uint64_t>(config.seed));  // this also draws the pairs that sparse attention computes
  Trace trace;
  model->output_shape(input, &trace);
  Value rows = to_value(trace);
  for (Value& row : rows.as_list()) {
    const Module& module = find_module(*model, row.at("path").as_string());
    const LayerCost& cost = *std::ranges::find(trace, module.path(), &LayerCost::path);
    const std::optional<DenseLayer> dense = dense_layer(module, cost);
    const std::string shared = why_shared(module);
    const std::string none =
        shared.empty() ? str("is ", with_article(module.kind()), "; formats hold conv2d, linear and embedding") : shared;
    Value& formats = row.set("formats", Value::map());
    for (const Format* format : builtin_formats()) {
      const std::string reason = dense ? format->for_layer(module).why_not(*dense) : none;
      Value& entry = formats.set(format->name(), Value::map());
      entry.set("possible", reason.empty());
      entry.set("reason", reason);
    }
  }
  return rows;
}

// The layers that one or several formats cannot hold for one reason.
struct Refusal {
  std::string formats;
  std::string reason;
  std::vector<std::string> layers = {};
};

void append(std::string& list, std::string_view item) { list += str(list.empty() ? "" : ", ", item); }

// "has 4 groups; NAME needs 1" -> "has 4 groups; the format needs 1", so that formats share their reasons.
std::string without_name(std::string reason, const std::string& name) {
  const std::string named = str("; ", name, ' ');
  const std::size_t at = reason.find(named);
  return at == std::string::npos ? reason : reason.replace(at, named.size(), "; the format ");
}

// The reasons of one layer, each once.
std::vector<Refusal> refusals_of(const Value& formats) {
  std::vector<Refusal> found;
  std::size_t refusing = 0;
  for (const Value::Entry& format : formats.as_map()) {
    if (format.value.at("possible").as_bool()) continue;
    ++refusing;
    const std::string reason = without_name(format.value.at("reason").as_string(), format.key);
    const auto same = std::ranges::find(found, reason, &Refusal::reason);
    append(same != found.end() ? same->formats : found.emplace_back(Refusal{"", reason}).formats, format.key);
  }
  if (found.size() == 1 && refusing == formats.as_map().size()) found.front().formats = "all";
  return found;
}

// The refusals of all layers, equal ones merged. Layers that no format can hold come last.
std::vector<Refusal> refusals(const Value& rows) {
  std::vector<Refusal> all;
  for (const Value& row : rows.as_list()) {
    for (Refusal& refusal : refusals_of(row.at("formats"))) {
      const auto equal = [&](const Refusal& other) { return other.formats == refusal.formats && other.reason == refusal.reason; };
      const auto known = std::ranges::find_if(all, equal);
      Refusal& here = known != all.end() ? *known : all.emplace_back(std::move(refusal));
      here.layers.push_back(row.at("path").as_string());
    }
  }
  std::ranges::stable_partition(all, [](const Refusal& refusal) { return refusal.formats != "all"; });
  return all;
}

// "conv1, conv2, conv3 and 4 more"
std::string first_of(const std::vector<std::string>& layers) {
  constexpr std::size_t kNamed = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(layers.size(), kNamed); ++i) append(text, layers[i]);
  return layers.size() > kNamed ? str(text, " and ", layers.size() - kNamed, " more") : text;
}

std::string possible_formats(const Value& formats) {
  std::string possible;
  for (const Value::Entry& format : formats.as_map()) {
    if (format.value.at("possible").as_bool()) append(possible, format.key);
  }
  return possible.empty() ? "-" : possible;
}

std::string layers_text(const Value& rows) {
  std::vector<std::vector<std::string>> table{{"layer", "kind", "parameters", "MACs", "formats"}};
  for (const Value& row : rows.as_list()) {
    table.push_back({row.at("path").as_string(), row.at("kind").as_string(), str(row.at("parameters").as_int()),
                     str(row.at("macs").as_int()), possible_formats(row.at("formats"))});
  }
  std::vector<std::vector<std::string>> reasons{{"format", "cannot hold", "because it"}};
  for (const Refusal& refusal : refusals(rows)) reasons.push_back({refusal.formats, first_of(refusal.layers), refusal.reason});
  return str(aligned(table, {false, false, true, true, false}), '\n', aligned(reasons, {false, false, false}));
}

int layers(const FileArguments& arguments) {
  Value rows = compressible_layers(load_experiment(arguments.config, arguments.overrides).config);
  if (arguments.json) {
    Value answer = Value::map();
    answer.set("layers", std::move(rows));
    std::cout << to_json(answer, 2) << '\n';
    return kDone;
  }
  std::cout << layers_text(rows) << "next: tessera train " << arguments.config << '\n';
  return kDone;
}

}  // namespace

void add_layers(Verb program) { add_file_verb(program, "layers", "List what may be compressed and how, and why not", &layers); }

}  // namespace tessera::cli
