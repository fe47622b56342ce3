// layers, schema: what an experiment file means.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

#include "cli/file_verb.h"
#include "compress/formats/builtin.h"
#include "core/config/range_text.h"
#include "core/config/read.h"
#include "core/support/error.h"
#include "layers/models/model.h"
#include "train/data/builtin.h"
#include "train/plan/plan.h"

namespace tessera::cli {
namespace {

// The list shows what selectors may name, so it asks nothing of the stages.
Value compressible_layers(const ExperimentConfig& config) {
  const DataSplits data = load_data(config.data, static_cast<std::uint64_t>(config.seed));
  const Shape input = data.train.dataset->batch_shape(1);
  const std::unique_ptr<Module> model = build_model(config.model, input);
  Trace trace;
  model->output_shape(input, &trace);
  Value rows = to_value(trace);
  for (Value& row : rows.as_list()) {
    const Module& module = find_module(*model, row.at("path").as_string());
    const LayerCost& cost = *std::ranges::find(trace, module.path(), &LayerCost::path);
    const std::optional<DenseLayer> dense = dense_layer(module, cost);
    Value& formats = row.set("formats", Value::map());
    for (const Format* format : builtin_formats()) {
      const std::string reason =
          dense ? format->why_not(*dense) : str("is a ", module.kind(), "; formats hold conv2d and linear");
      Value& entry = formats.set(format->name(), Value::map());
      entry.set("possible", reason.empty());
      entry.set("reason", reason);
    }
  }
  return rows;
}

// Those that can hold the layer, then why the others cannot; one reason where all have the same.
std::string formats_cell(const Value& formats) {
  const std::string& first = formats.as_map().front().value.at("reason").as_string();
  const auto same = [&](const Value::Entry& format) { return format.value.at("reason").as_string() == first; };
  if (!first.empty() && std::ranges::all_of(formats.as_map(), same)) return "none: " + first;
  std::string possible, reasons;
  for (const Value::Entry& format : formats.as_map()) {
    if (format.value.at("possible").as_bool()) {
      possible += str(possible.empty() ? "" : ", ", format.key);
    } else {
      reasons += str(reasons.empty() ? "" : "; ", "no ", format.key, ": ", format.value.at("reason").as_string());
    }
  }
  return possible.empty() ? reasons : str(possible, reasons.empty() ? "" : "; ", reasons);
}

int layers(const FileArguments& arguments) {
  Value rows = compressible_layers(load_experiment(arguments.config, arguments.overrides).config);
  if (arguments.json) {
    Value answer = Value::map();
    answer.set("layers", std::move(rows));
    std::cout << to_json(answer, 2) << '\n';
    return kDone;
  }
  std::printf("%-32s %-16s %12s %14s  %s\n", "layer", "kind", "parameters", "MACs", "formats");
  for (const Value& row : rows.as_list()) {
    std::printf("%-32s %-16s %12lld %14lld  %s\n", row.at("path").as_string().c_str(), row.at("kind").as_string().c_str(),
                static_cast<long long>(row.at("parameters").as_int()), static_cast<long long>(row.at("macs").as_int()),
                formats_cell(row.at("formats")).c_str());
  }
  std::cout << "next: tessera train " << arguments.config << '\n';
  return kDone;
}

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

int print_schema(bool json) {
  Value list = Value::list();
  for (const SchemaEntry& entry : schema<ExperimentConfig>()) {
    if (json) {
      list.as_list().push_back(write(SchemaRow{entry}));
      continue;
    }
    const std::string fallback = entry.spec.required ? "required" : "default " + entry.default_value;
    std::printf("%-44s %-18s %-24s %s\n", entry.path.c_str(), entry.type.c_str(), fallback.c_str(), line_of(entry).c_str());
  }
  if (json) std::cout << to_json(list, 2) << '\n';
  return kDone;
}

}  // namespace

void add_layers(Verb program) {
  add_file_verb(program, "layers", "List what may be compressed and how, and why not", &layers);
}

void add_schema(Verb program) {
  const Verb verb = program.add("schema", "List every key of an experiment file");
  auto json = std::make_shared<bool>(false);
  verb.flag("--json", *json, "for another program to read");
  verb.footer("Example: tessera schema | grep factorise");
  verb.runs([json] { return print_schema(*json); });
}

}  // namespace tessera::cli
